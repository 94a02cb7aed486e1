#include "lib/ops/backward_reads.h"

#include <doctest/doctest.h>
