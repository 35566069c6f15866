#include "engine/shim/network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/files.h"

namespace muster::engine {
namespace {

using base::UniqueFd;

/// A listener on a port of 127.0.0.1 that the kernel chooses.
struct LoopbackListener {
  UniqueFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in where{};

  LoopbackListener() {
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    auto* const address = reinterpret_cast<sockaddr*>(&where);
    is_up = ::bind(socket.get(), address, size) == 0 && ::listen(socket.get(), 1) == 0 &&
            ::getsockname(socket.get(), address, &size) == 0;
  }

  bool is_up = false;
};

bool reaches(const sockaddr_in& where) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
}

/// The exit code of `action` in a child process.
int in_child(const std::function<int()>& action) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(action());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(NetworkNamespace, ReachesOnlyItself) {
  const auto made = make_network_namespace(MUSTER_SHIM);
  ASSERT_TRUE(made) << made.error().to_string();
  const LoopbackListener outside;
  ASSERT_TRUE(outside.is_up);

  const int outcome = in_child([&] {
    if (!enter_network(made->network.get(), made->user.get())) return 1;
    if (reaches(outside.where)) return 2;
    const LoopbackListener inside;
    if (!inside.is_up || !reaches(inside.where)) return 3;
    return ::geteuid() == ::getuid() ? 0 : 4;
  });

  EXPECT_EQ(outcome, 0);
}

TEST(NetworkNamespace, IsFoundByAProcessInIt) {
  const auto made = make_network_namespace(MUSTER_SHIM);
  ASSERT_TRUE(made);

  const int outcome = in_child([&] {
    if (!enter_network(made->network.get(), made->user.get())) return 1;
    const pid_t inside = ::getpid();
    // The network of this process itself has no descriptors.
    const auto own = network_of(inside);
    return own && !own->network ? 0 : 2;
  });

  EXPECT_EQ(outcome, 0);
}

TEST(NetworkNamespace, OfAMissingShimIsAnError) {
  EXPECT_FALSE(make_network_namespace("/nowhere/muster-shim"));
}

}  // namespace
}  // namespace muster::engine
