#include "engine/container/ssh_tunnel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/unique_fd.h"
#include "engine/container/test_sshd.h"

namespace muster::engine {
namespace {

using base::UniqueFd;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_LT(path.size(), sizeof address.sun_path);
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

/// A socket that accepts connections.
UniqueFd listening(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd.get(), 8), 0);
  return fd;
}

UniqueFd connected(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

/// Whether bytes written at one end arrive at the other.
bool leads_to(const std::string& near_end, const UniqueFd& far_end) {
  const UniqueFd caller = connected(near_end);
  const UniqueFd callee(::accept(far_end.get(), nullptr, nullptr));
  EXPECT_EQ(::write(callee.get(), "hello", 5), 5);
  std::array<char, 5> buffer{};
  EXPECT_EQ(::recv(caller.get(), buffer.data(), buffer.size(), MSG_WAITALL), 5);
  return std::string(buffer.data(), buffer.size()) == "hello";
}

class SshTunnelTest : public testing::Test {
 protected:
  std::unique_ptr<SshTunnel> open(SshEndpoint endpoint, TunnelPatience patience = {}) {
    patience.first_pause = std::chrono::milliseconds(1);
    return std::make_unique<SshTunnel>(
        loop_, std::move(endpoint), near_end_,
        [this](base::Result<void> state) {
          states_.push_back(state ? "open" : state.error().to_string());
          loop_.stop();
        },
        patience);
  }

  /// The next reported state.
  std::string next_state() {
    bool late = false;
    const auto bound = loop_.after(std::chrono::seconds(60), [&] {
      late = true;
      loop_.stop();
    });
    while (states_.size() == taken_ && !late) loop_.run();
    return states_.size() == taken_ ? "no state was reported" : states_[taken_++];
  }

  base::EventLoop loop_;
  TestSshd sshd_;
  std::string near_end_ = sshd_.at("near.sock");
  std::vector<std::string> states_;
  size_t taken_ = 0;
};

TEST_F(SshTunnelTest, LeadsToTheSocketOfAnotherHost) {
  const UniqueFd engine = listening(sshd_.at("far.sock"));

  const auto tunnel = open({.user = {}, .host = "gpu-1", .socket = sshd_.at("far.sock")});

  ASSERT_EQ(next_state(), "open");
  EXPECT_TRUE(leads_to(near_end_, engine));
}

TEST_F(SshTunnelTest, IsReopenedWhenItBreaks) {
  const UniqueFd engine = listening(sshd_.at("far.sock"));
  const auto tunnel = open({.user = {}, .host = "gpu-1", .socket = sshd_.at("far.sock")});
  ASSERT_EQ(next_state(), "open");

  sshd_.cut();

  const std::string broken = next_state();
  EXPECT_NE(broken.find("the ssh connection to gpu-1 has ended"), std::string::npos) << broken;
  ASSERT_EQ(next_state(), "open");
  EXPECT_TRUE(leads_to(near_end_, engine));
}

TEST_F(SshTunnelTest, FindsTheUsualSocketByDefault) {
  std::filesystem::create_directory(sshd_.at("podman"));
  const UniqueFd engine = listening(sshd_.at("podman/podman.sock"));
  // The user's own socket is searched in the runtime folder of the other host.
  ASSERT_TRUE(base::write_file(sshd_.at("sshd_config"), *base::read_file(sshd_.at("sshd_config")) +
                                                            "SetEnv XDG_RUNTIME_DIR=" +
                                                            sshd_.folder().path().string() + "\n"));

  const auto tunnel = open({.user = {}, .host = "gpu-1", .socket = {}});

  ASSERT_EQ(next_state(), "open");
  EXPECT_TRUE(leads_to(near_end_, engine));
}

TEST_F(SshTunnelTest, ReportsTheMessageOfSshAndACommandToTry) {
  sshd_.lock();

  const auto tunnel =
      open({.user = "ada", .host = "gpu-1", .port = 2222, .socket = sshd_.at("far.sock")});

  const std::string refused = next_state();
  EXPECT_NE(refused.find("no ssh connection to gpu-1"), std::string::npos) << refused;
  EXPECT_NE(refused.find("Permission denied"), std::string::npos) << refused;
  EXPECT_NE(refused.find("ssh -o BatchMode=yes -p 2222 -l ada -- gpu-1 true"), std::string::npos)
      << refused;
}

TEST_F(SshTunnelTest, ReportsAHostWithoutAnEngine) {
  // A host without an engine: its ssh ends as the script that searches sockets does.
  sshd_.script("ssh", "exit 44\n");

  const auto tunnel = open({.user = {}, .host = "gpu-1", .socket = {}});

  const std::string none = next_state();
  EXPECT_NE(none.find("no Docker or Podman was found on gpu-1"), std::string::npos) << none;
  EXPECT_NE(none.find("systemctl --user start podman.socket"), std::string::npos) << none;
}

TEST_F(SshTunnelTest, GivesUpAnSshThatHangsAndTriesAgain) {
  const UniqueFd engine = listening(sshd_.at("far.sock"));
  std::filesystem::rename(sshd_.at("ssh"), sshd_.at("real-ssh"));
  ASSERT_EQ(::mkfifo(sshd_.at("never").c_str(), 0600), 0);
  // The first attempt hangs.
  sshd_.script("ssh", "mv " + sshd_.at("real-ssh") + " " + sshd_.at("ssh") + "\nexec cat " +
                          sshd_.at("never") + "\n");

  const auto tunnel = open({.user = {}, .host = "gpu-1", .socket = sshd_.at("far.sock")},
                           {.opening = std::chrono::milliseconds(1000)});

  std::string state = next_state();
  do {
    ASSERT_NE(state.find("did not open within 1 s"), std::string::npos) << state;
    state = next_state();
  } while (state != "open");  // a slow machine may be late more than once
  EXPECT_TRUE(leads_to(near_end_, engine));
}

TEST_F(SshTunnelTest, LeavesNeitherSocketNorProcess) {
  const UniqueFd engine = listening(sshd_.at("far.sock"));
  auto tunnel = open({.user = {}, .host = "gpu-1", .socket = sshd_.at("far.sock")});
  ASSERT_EQ(next_state(), "open");
  const auto sshd = base::open_pidfd(std::stoi(*base::read_file(sshd_.at("pid"))));
  ASSERT_TRUE(sshd);

  tunnel.reset();

  EXPECT_FALSE(std::filesystem::exists(near_end_));
  const auto ended = loop_.when_readable(sshd->get(), [this] { loop_.stop(); });
  loop_.run();  // the far side ends, too
}

}  // namespace
}  // namespace muster::engine
