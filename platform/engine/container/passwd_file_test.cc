#include "engine/container/passwd_file.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

constexpr const char* kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "# a comment\n"
    "broken:x:many:0::/:\n"
    "mpi:x:1000:1001:MPI,,,:/home/mpi:\n"
    "4711:x:12:13::/srv:/bin/sh\n"
    "nohome:x:14:15:::/bin/sh";
constexpr const char* kGroup =
    "root:x:0:\n"
    "mpi:x:1001:ada\n"
    "video:x:44:\n";

launch::Account account(uid_t uid, gid_t gid, const std::string& name, const std::string& home) {
  return {.uid = uid, .gid = gid, .name = name, .home = home};
}

TEST(FindAccount, KnowsEveryWayToNameAUser) {
  const std::pair<std::string, launch::Account> cases[] = {
      {"", account(0, 0, "root", "/root")},
      {"root", account(0, 0, "root", "/root")},
      {"0", account(0, 0, "root", "/root")},
      {"mpi", account(1000, 1001, "mpi", "/home/mpi")},
      {"1000", account(1000, 1001, "mpi", "/home/mpi")},
      {"mpi:video", account(1000, 44, "mpi", "/home/mpi")},
      {"mpi:77", account(1000, 77, "mpi", "/home/mpi")},
      {"1000:1000", account(1000, 1000, "mpi", "/home/mpi")},
      {"2000", account(2000, 0, "", "/")},
      {"2000:video", account(2000, 44, "", "/")},
      {"4711", account(12, 13, "4711", "/srv")},
      {"nohome", account(14, 15, "nohome", "/")},
  };
  for (const auto& [user, wanted] : cases) {
    const auto found = find_account(user, kPasswd, kGroup);
    ASSERT_TRUE(found) << user << ": " << found.error().to_string();
    EXPECT_EQ(*found, wanted) << user;
  }
}

TEST(FindAccount, NeedsNoFilesForNumbers) {
  EXPECT_EQ(*find_account("", "", ""), account(0, 0, "", "/"));
  EXPECT_EQ(*find_account("1000:100", "", ""), account(1000, 100, "", "/"));
}

TEST(FindAccount, SaysWhichNamesThereAre) {
  const std::pair<std::string, std::string> cases[] = {
      {"ada", "the image has no user 'ada'\n  there are root, mpi, 4711, nohome"},
      {"nohom", "did you mean 'nohome'?"},
      {"broken", "the image has no user 'broken'"},
      {"mpi:vidio", "the image has no group 'vidio'\n  did you mean 'video'?"},
      {"mpi:staff", "there are root, mpi, video"},
      {"-1", "the image has no user '-1'"},
      {"4294967296", "the image has no user '4294967296'"},
  };
  for (const auto& [user, says] : cases) {
    const auto found = find_account(user, kPasswd, kGroup);
    ASSERT_FALSE(found) << user;
    EXPECT_EQ(found.error().code, base::ErrorCode::kInvalid);
    EXPECT_NE(found.error().to_string().find(says), std::string::npos) << user << "\n"
                                                                       << found.error().to_string();
  }
  const auto bare = find_account("ada", "", "");
  ASSERT_FALSE(bare);
  EXPECT_EQ(bare.error().advice, "it has none by name: give a number");
}

TEST(FindAccount, RefusesWhatIsNoUser) {
  for (const char* user : {":", "mpi:", ":video", "a:b:c"}) {
    const auto found = find_account(user, kPasswd, kGroup);
    ASSERT_FALSE(found) << user;
    EXPECT_EQ(found.error().what, "'" + std::string(user) + "' is no user of an image");
  }
}

}  // namespace
}  // namespace muster::engine
