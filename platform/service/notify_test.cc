#include "service/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/test_folder.h"
#include "base/unique_fd.h"

namespace muster::service {
namespace {

/// A socket as systemd has one.
base::UniqueFd listening_at(const std::string& name) {
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  return fd;
}

std::string heard_by(const base::UniqueFd& fd) {
  std::array<char, 256> text{};
  const ssize_t count = ::recv(fd.get(), text.data(), text.size(), MSG_DONTWAIT);
  return count < 0 ? "" : std::string(text.data(), static_cast<size_t>(count));
}

TEST(Notify, ReachesASocketInTheFileSystem) {
  const base::TestFolder folder;
  const std::string name = (folder / "notify").string();
  const base::UniqueFd systemd = listening_at(name);
  EXPECT_TRUE(notify(name, "READY=1\nSTATUS=leads"));
  EXPECT_EQ(heard_by(systemd), "READY=1\nSTATUS=leads");
}

TEST(Notify, ReachesAnAbstractSocket) {
  const base::TestFolder folder;
  const std::string name = "@" + (folder / "notify").string();
  const base::UniqueFd systemd = listening_at(name);
  EXPECT_TRUE(notify(name, "STOPPING=1"));
  EXPECT_EQ(heard_by(systemd), "STOPPING=1");
}

TEST(Notify, IsNoTroubleWhereNobodyListens) {
  EXPECT_FALSE(notify("", "READY=1"));
  EXPECT_FALSE(notify("/nowhere/at/all", "READY=1"));
  EXPECT_FALSE(notify("relative", "READY=1"));
  EXPECT_FALSE(notify("/" + std::string(200, 'x'), "READY=1"));
}

TEST(Notify, TheSocketIsNotLeftToTheJobs) {
  ::setenv("NOTIFY_SOCKET", "/run/systemd/notify", 1);
  EXPECT_EQ(take_notify_socket(), "/run/systemd/notify");
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
  EXPECT_EQ(take_notify_socket(), "");
}

}  // namespace
}  // namespace muster::service
