// Many readers in one thread, with epoll over plain sockets. A thread and a parser for each reader
// would measure the benchmark instead of the server.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "api/load.h"
#include "base/unique_fd.h"
#include "http/sockets.h"

namespace bench {

namespace {

using muster::base::UniqueFd;

constexpr std::string_view kLine = "\"text\":\"line ";
constexpr std::string_view kEnd = "event: end";

/// The log as one reader receives it. Searches the numbers of lines in bytes that are divided
/// anywhere.
class Reader {
 public:
  /// Returns false if a line was missing, was repeated, or was out of order.
  bool take(std::string_view bytes) {
    text_.append(bytes);
    size_t from = 0;
    while (true) {
      const size_t at = text_.find(kLine, from);
      if (at == std::string::npos || at + kLine.size() + 24 > text_.size()) break;
      if (std::strtoull(text_.c_str() + at + kLine.size(), nullptr, 10) != lines_) return false;
      ++lines_;
      from = at + kLine.size();
    }
    if (text_.find(kEnd, from) != std::string::npos) ended_ = true;
    // Keeps bytes that may be the beginning of a line.
    constexpr size_t kKept = kLine.size() + 24;
    if (from == 0 && text_.size() > kKept) from = text_.size() - kKept;
    text_.erase(0, from);
    return true;
  }
  size_t lines() const { return lines_; }
  bool ended() const { return ended_; }

 private:
  std::string text_;
  size_t lines_ = 0;
  bool ended_ = false;
};

UniqueFd ask(const std::filesystem::path& socket, const std::string& target) {
  auto connected = muster::http::connect_to(socket);
  if (!connected) {
    std::fprintf(stderr, "bench_api: %s\n", connected.error().to_string().c_str());
    std::exit(1);
  }
  const std::string request = "GET " + target + " HTTP/1.1\r\nhost: muster\r\n\r\n";
  if (::send(connected->get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) std::exit(1);
  return *std::move(connected);
}

void watch(int epoll, int fd, uint64_t number) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) std::exit(1);
}

}  // namespace

int watch_log(const std::filesystem::path& socket, const std::string& job, size_t readers) {
  const UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  std::vector<UniqueFd> sockets;
  std::vector<Reader> states(readers);
  for (size_t i = 0; i < readers; ++i) {
    sockets.push_back(ask(socket, "/v1/jobs/" + job + "/logs?follow=true"));
    watch(epoll.get(), sockets.back().get(), i);
  }
  std::cout << "ready" << std::endl;
  const auto start = std::chrono::steady_clock::now();
  std::vector<char> buffer(1 << 20);
  size_t open = readers;
  size_t faults = 0;
  uint64_t bytes = 0;
  std::array<epoll_event, 64> events{};
  while (open > 0) {
    const int count = ::epoll_wait(epoll.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const size_t number = events[static_cast<size_t>(i)].data.u64;
      const ssize_t got = ::recv(sockets[number].get(), buffer.data(), buffer.size(), 0);
      const bool is_whole =
          got > 0 && states[number].take({buffer.data(), static_cast<size_t>(got)});
      if (got > 0) bytes += static_cast<uint64_t>(got);
      if (is_whole && !states[number].ended()) continue;
      if (!states[number].ended()) ++faults;
      sockets[number].reset();
      --open;
    }
  }
  size_t least = SIZE_MAX;
  size_t most = 0;
  for (const Reader& reader : states) {
    least = std::min(least, reader.lines());
    most = std::max(most, reader.lines());
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "{\"seconds\": %.2f, \"least_lines\": %zu, \"most_lines\": %zu, \"faults\": %zu, \"bytes\": "
      "%llu}\n",
      seconds, least, most, faults, static_cast<unsigned long long>(bytes));
  return faults == 0 ? 0 : 1;
}

int hold_streams(const std::filesystem::path& socket, const std::string& job, size_t count) {
  std::vector<UniqueFd> sockets;
  for (size_t i = 0; i < count; ++i) {
    sockets.push_back(ask(socket, i % 2 == 0 ? "/v1/watch/jobs?name=" + job
                                             : "/v1/jobs/" + job + "/logs?follow=true"));
    std::array<char, 4096> some{};
    if (::recv(sockets.back().get(), some.data(), some.size(), 0) <= 0) return 1;
  }
  std::cout << "ready" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  return 0;
}

}  // namespace bench
