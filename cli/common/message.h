// The messages that a program writes on standard error, as text for people or as JSON for programs.
//
// As JSON, each message is one object on a line of its own: schemas/message.schema.json. The whole
// process has one form, because a message may come before the command line has been parsed, or when
// no memory is left.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/exit_code.h"
#include "lib/base/result.h"

namespace ckplan {

enum class MessageForm { kText, kJson };

inline constexpr std::string_view kMessagesFlag = "--messages";

// The form that the arguments ask for. They are searched before they are parsed, so that a mistake
// in them is reported in that form, too.
MessageForm MessageFormIn(const std::vector<std::string>& arguments);

void SetMessageForm(MessageForm form);
MessageForm CurrentMessageForm();

// A warning or a note, as a line of JSON.
std::string MessageJson(std::string_view level, std::string_view message);

// An error that ends the program with this exit code, as a line of JSON. The remedy of the error is
// part of the message, and stands beside it as data.
std::string ErrorJson(const Error& error, ExitCode code);

}  // namespace ckplan
