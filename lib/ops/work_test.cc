#include "lib/ops/work.h"

#include <doctest/doctest.h>
