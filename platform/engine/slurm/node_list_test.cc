#include "engine/slurm/node_list.h"

#include <gtest/gtest.h>

namespace muster::engine::slurm {
namespace {

TEST(ExpandNodes, EachNameInOrderWithItsZeros) {
  struct Row {
    const char* list;
    std::vector<std::string> names;
  };
  const std::vector<Row> rows{
      {"n1", {"n1"}},
      {"n[1-3,07],gpu-a2", {"n1", "n2", "n3", "n07", "gpu-a2"}},
      {"n[08-11]", {"n08", "n09", "n10", "n11"}},
      {"n[099-101]", {"n099", "n100", "n101"}},
      {"r[1-2]n[1,3]", {"r1n1", "r1n3", "r2n1", "r2n3"}},
      {"r[1-2]-ib", {"r1-ib", "r2-ib"}},
      {"a,b,c", {"a", "b", "c"}},
      {"", {}},
      {"(null)", {}},
      {"None assigned", {}},
  };
  for (const Row& row : rows) {
    const auto names = expand_nodes(row.list);
    ASSERT_TRUE(names) << row.list;
    EXPECT_EQ(*names, row.names) << row.list;
  }
}

TEST(ExpandNodes, WhatIsNoListIsAnErrorAndNeverAGuess) {
  for (const char* list :
       {"n[1-3", "n1-3]", "n[]", "n[3-1]", "n[a-b]", "n[1-]", "n[-3]", "n[1--2]", ",", "n1,", "[",
        "n[1-9999999]", "n[0-99999][0-99999]", "n[99999999999999999999]", "n[1-2,]]"}) {
    const auto names = expand_nodes(list);
    ASSERT_FALSE(names) << list;
    EXPECT_EQ(names.error().what, "'" + std::string(list) + "' is no list of nodes");
  }
}

}  // namespace
}  // namespace muster::engine::slurm
