#include "lib/ops/op_table.h"

#include <doctest/doctest.h>
