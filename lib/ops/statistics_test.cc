#include "lib/ops/statistics.h"

#include <doctest/doctest.h>
