#include "engine/process/account_files.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

TEST(Passwd, GetsAPlainShellForTheUserAndNobodyElse) {
  EXPECT_EQ(with_plain_shell("root:x:0:0:root:/root:/bin/bash\n"
                             "ada:x:1:1::/home/ada:/usr/sbin/nologin\n"
                             "adamant:x:2:2::/home/adamant:/bin/bash\n",
                             "ada"),
            "root:x:0:0:root:/root:/bin/bash\n"
            "ada:x:1:1::/home/ada:/bin/sh\n"
            "adamant:x:2:2::/home/adamant:/bin/bash\n");
}

TEST(Passwd, StaysAsItIsForAUserItDoesNotKnow) {
  EXPECT_EQ(with_plain_shell("root:x:0:0:root:/root:/bin/bash", "ada"),
            "root:x:0:0:root:/root:/bin/bash\n");
  EXPECT_EQ(with_plain_shell("", "ada"), "");
}

TEST(Shadow, HasNoPasswordAndIsNotLocked) {
  EXPECT_EQ(unlocked_shadow("root"), "root:*:1:0:99999:7:::\n");
}

}  // namespace
}  // namespace muster::engine
