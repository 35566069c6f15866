#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace muster::engine {

/// A child process that does nothing, with the descriptors that this process had when it was made. It
/// ends with this object.
class IdleProcess {
 public:
  IdleProcess() {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    char byte = 0;
    if (pid_ == 0) {
      ::close(ends_[1]);
      const bool notified = ::write(ready[1], &byte, 1) == 1;
      ::_exit(notified && ::read(ends_[0], &byte, 1) == 0 ? 0 : 1);
    }
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    for (const int end : ready) ::close(end);
  }
  ~IdleProcess() {
    for (const int end : ends_) ::close(end);
    ::waitpid(pid_, nullptr, 0);
  }
  IdleProcess(const IdleProcess&) = delete;
  IdleProcess& operator=(const IdleProcess&) = delete;

 private:
  std::array<int, 2> ends_{};
  pid_t pid_ = -1;
};

}  // namespace muster::engine
