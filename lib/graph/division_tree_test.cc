#include "lib/graph/division_tree.h"

#include <doctest/doctest.h>
