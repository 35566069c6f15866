#include "launch/ssh_files.h"

#include <gtest/gtest.h>

namespace muster::launch {
namespace {

// engine/conformance_test.cc tests that OpenSSH accepts the files.

TEST(SshKey, DependsOnlyOnTheSeed) {
  const auto one = ssh_key_from_seed({1});
  EXPECT_EQ(one->private_file, ssh_key_from_seed({1})->private_file);
  EXPECT_NE(one->public_line, ssh_key_from_seed({2})->public_line);
}

TEST(SshKey, HasTheFirstPublicKeyOfRfc8032) {
  // RFC 8032, 7.1, TEST 1: the public half is d75a9801...511a.
  const std::array<uint8_t, 32> seed{0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60,
                                     0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
                                     0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19,
                                     0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60};
  EXPECT_EQ(ssh_key_from_seed(seed)->public_line,
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea");
}

TEST(SshdConfig, QuotesPathsWithBlanks) {
  const std::string config = sshd_config("/my disk/it's/generated");

  for (const char* line : {"HostKey \"/my disk/it's/generated/ssh/host_ed25519\"\n",
                           "AuthorizedKeysFile \"/my disk/it's/generated/ssh/authorized_keys\"\n",
                           "ForceCommand exec '/my disk/it'\\''s/generated/session'\n"}) {
    EXPECT_NE(config.find(line), std::string::npos) << line << config;
  }
}

}  // namespace
}  // namespace muster::launch
