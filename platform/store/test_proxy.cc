#include "store/test_proxy.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "base/files.h"

namespace muster::store {

namespace {

base::UniqueFd unix_socket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
  return address;
}

void signal(const base::UniqueFd& event) {
  const uint64_t one = 1;
  EXPECT_EQ(::write(event.get(), &one, sizeof one), ssize_t{sizeof one});
}

/// The protocol's message of a simple query, as the store sends it: type, length, text.
constexpr std::string_view kCommit(
    "Q\0\0\0\x0B"
    "COMMIT\0",
    12);

}  // namespace

TestProxy::TestProxy(const std::filesystem::path& folder, std::filesystem::path server)
    : server_(std::move(server)),
      listening_(unix_socket()),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      drop_(::eventfd(0, EFD_CLOEXEC)) {
  const sockaddr_un address = address_of(folder / ".s.PGSQL.5432");
  EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  EXPECT_EQ(::listen(listening_.get(), 16), 0);
  thread_ = std::thread([this] { run(); });
}

TestProxy::~TestProxy() {
  signal(stop_);
  thread_.join();
}

void TestProxy::cut(Cut cut, bool then_refuse) {
  then_refuse_ = then_refuse;
  cut_ = cut;
}

void TestProxy::drop_all() {
  signal(drop_);
}

void TestProxy::run() {
  while (true) {
    std::vector<pollfd> waited = {{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = listening_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = drop_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = -1, .events = 0, .revents = 0}};
    for (const auto& [client, server] : servers_) {
      waited.push_back({.fd = client, .events = POLLIN, .revents = 0});
      waited.push_back({.fd = server.get(), .events = POLLIN, .revents = 0});
    }
    if (::poll(waited.data(), waited.size(), -1) < 0) continue;
    if (waited[0].revents != 0) return;
    if (waited[2].revents != 0) {
      uint64_t count = 0;
      EXPECT_EQ(::read(drop_.get(), &count, sizeof count), ssize_t{sizeof count});
      servers_.clear();
      clients_.clear();
      continue;
    }
    for (size_t i = 4; i < waited.size(); i += 2) {
      const int client = waited[i].fd;
      const int server = waited[i + 1].fd;
      const bool goes_on = (waited[i].revents == 0 || pass(client, server, true)) &&
                           (waited[i + 1].revents == 0 || pass(server, client, false));
      if (goes_on) continue;
      servers_.erase(client);
      clients_.erase(client);
    }
    if (waited[1].revents != 0) accept_one();
  }
}

void TestProxy::accept_one() {
  base::UniqueFd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client || refuses_) return;
  base::UniqueFd server = unix_socket();
  const sockaddr_un address = address_of(server_);
  if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return;
  }
  const int number = client.get();
  servers_[number] = std::move(server);
  clients_[number] = std::move(client);
}

bool TestProxy::pass(int from, int to, bool is_from_client) {
  char bytes[65'536];
  const ssize_t length = ::read(from, bytes, sizeof bytes);
  if (length <= 0) return false;
  const std::string_view message(bytes, static_cast<size_t>(length));
  if (!is_from_client && awaits_answer_) {
    awaits_answer_ = false;
    return false;
  }
  if (is_from_client && message == kCommit && cut_ != Cut::kNever) {
    const Cut cut = cut_.exchange(Cut::kNever);
    refuses_ = refuses_ || then_refuse_;
    if (cut == Cut::kBeforeCommit) return false;
    awaits_answer_ = true;
  }
  return base::write_all(to, message).ok();
}

}  // namespace muster::store
