// For tests: a pseudo-terminal, and standard error as a pipe, so that a test can wait for a question
// before it types the answer.
#pragma once

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/unique_fd.h"

namespace muster::cli {

class TestTerminal {
 public:
  explicit TestTerminal(winsize size = {
                            .ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0}) {
    int keyboard = -1;
    int terminal = -1;
    EXPECT_EQ(::openpty(&keyboard, &terminal, nullptr, nullptr, &size), 0);
    keyboard_.reset(keyboard);
    terminal_.reset(terminal);
  }

  /// The descriptor of the terminal, as a program has it.
  int fd() const { return terminal_.get(); }

  void type(const std::string& text) const { EXPECT_TRUE(base::write_all(keyboard_.get(), text)); }

  /// Closes the terminal, and returns everything that it has displayed. REQUIRES: no other copy of
  /// fd() is open.
  std::string output() {
    terminal_.reset();  // then reading ends
    std::string text;
    std::array<char, 256> bytes{};
    ssize_t count = 0;
    while ((count = ::read(keyboard_.get(), bytes.data(), bytes.size())) > 0) {
      text.append(bytes.data(), static_cast<size_t>(count));
    }
    return text;
  }

 private:
  base::UniqueFd keyboard_;
  base::UniqueFd terminal_;
};

/// While this object exists, standard error is a pipe.
class PipedStandardError {
 public:
  PipedStandardError() : before_(::dup(STDERR_FILENO)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    reader_.reset(ends[0]);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
  }
  ~PipedStandardError() { ::dup2(before_.get(), STDERR_FILENO); }
  PipedStandardError(const PipedStandardError&) = delete;
  PipedStandardError& operator=(const PipedStandardError&) = delete;

  /// Waits until this text was printed.
  void wait_for(std::string_view question) const {
    std::string text;
    char letter = 0;
    while (!text.ends_with(question) && ::read(reader_.get(), &letter, 1) == 1) text += letter;
  }

 private:
  base::UniqueFd before_;
  base::UniqueFd reader_;
};

}  // namespace muster::cli
