// For tests: a port that no process listens on, which other programs do not get meanwhile.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/unique_fd.h"

namespace muster::base {

/// A port of 127.0.0.1 that refuses connections, and which the system gives to no other process. A
/// process that asks for this number with SO_REUSEADDR may listen there.
class HeldPort {
 public:
  HeldPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), any, length), 0);
    EXPECT_EQ(::getsockname(socket_.get(), any, &length), 0);
    number_ = ntohs(address.sin_port);
  }

  uint16_t number() const { return number_; }

 private:
  UniqueFd socket_;
  uint16_t number_ = 0;
};

}  // namespace muster::base
