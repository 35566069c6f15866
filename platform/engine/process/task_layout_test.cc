#include "engine/process/task_layout.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/test_folder.h"
#include "base/text.h"

namespace muster::engine {

namespace {

// --- the user database

TEST(Passwd, GetsAPlainShellForTheUserOnly) {
  EXPECT_EQ(with_plain_shell("root:x:0:0:root:/root:/bin/bash\n"
                             "ada:x:1:1::/home/ada:/usr/sbin/nologin\n"
                             "adamant:x:2:2::/home/adamant:/bin/bash\n",
                             "ada"),
            "root:x:0:0:root:/root:/bin/bash\n"
            "ada:x:1:1::/home/ada:/bin/sh\n"
            "adamant:x:2:2::/home/adamant:/bin/bash\n");
}

TEST(Passwd, StaysUnchangedForAnUnknownUser) {
  EXPECT_EQ(with_plain_shell("root:x:0:0:root:/root:/bin/bash", "ada"),
            "root:x:0:0:root:/root:/bin/bash\n");
  EXPECT_EQ(with_plain_shell("", "ada"), "");
}

TEST(Shadow, HasNoPasswordAndIsNotLocked) {
  EXPECT_EQ(unlocked_shadow("root"), "root:*:1:0:99999:7:::\n");
}

// --- /etc/hosts

class HostsFile : public testing::Test {
 protected:
  void write(const std::string& text) { ASSERT_TRUE(base::write_file(file_, text)); }
  std::string text() const { return *base::read_file(file_); }

  const base::TestFolder folder_;
  const std::filesystem::path file_ = folder_ / "hosts";
};

TEST_F(HostsFile, GetsTheNamesThatItLacks) {
  write("127.1.0.1 a\n127.0.0.1 localhost here # there\n");

  ASSERT_TRUE(add_hosts(file_, {{"a", "127.1.0.1"}, {"b", "127.1.0.2"}, {"b", "127.1.0.2"}}));
  ASSERT_TRUE(add_hosts(file_, {{"there", "127.1.0.3"}, {"here", "127.0.0.1"}}));

  EXPECT_EQ(text(),
            "127.1.0.1 a\n127.0.0.1 localhost here # there\n127.1.0.2 b\n127.1.0.3 there\n");
}

TEST_F(HostsFile, IsTheSameFileAsBefore) {
  write("127.1.0.1 a\n");
  const std::filesystem::path mounted = folder_ / "mounted";
  std::filesystem::create_hard_link(file_, mounted);

  ASSERT_TRUE(add_hosts(file_, {{"b", "127.1.0.2"}}));

  EXPECT_EQ(*base::read_file(mounted), "127.1.0.1 a\n127.1.0.2 b\n");
}

TEST_F(HostsFile, CompletesItsLastLineFirst) {
  write("127.0.0.1 localhost");

  ASSERT_TRUE(add_hosts(file_, {{"b", "127.1.0.2"}}));

  EXPECT_EQ(text(), "127.0.0.1 localhost\n127.1.0.2 b\n");
}

TEST_F(HostsFile, HasNoLineAcrossTheEndOfAPage) {
  write("127.0.0.1 localhost\n");
  HostNames names;
  for (int i = 0; i < 300; ++i) {
    names.emplace_back("worker-" + std::to_string(i), "127.1.1." + std::to_string(i));
  }

  ASSERT_TRUE(add_hosts(file_, names));

  const std::string all = text();
  ASSERT_GT(all.size(), 4096U);
  EXPECT_EQ(all[4095], '\n');
  size_t found = 0;
  for (const std::string& line : base::split(all, '\n')) found += line.empty() ? 0U : 1U;
  EXPECT_EQ(found, names.size() + 1);
}

TEST_F(HostsFile, ANameWithAnotherAddressIsAConflict) {
  write("10.0.0.1 b\n");

  const auto added = add_hosts(file_, {{"a", "127.1.0.1"}, {"b", "127.1.0.2"}});

  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, base::ErrorCode::kConflict);
  EXPECT_EQ(added.error().what,
            "'b' is 10.0.0.1 in /etc/hosts already, which conflicts with 127.1.0.2");
  EXPECT_EQ(text(), "10.0.0.1 b\n");
}

}  // namespace

}  // namespace muster::engine
