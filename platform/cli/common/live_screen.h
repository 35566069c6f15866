// A terminal that shows pictures in place, one after another: the alternate screen, keys without
// their echo, and everything as it was when this ends.
//
// Construct before other threads start (it holds an Interrupts). Not copied; one at a time.
#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/common/interrupts.h"

namespace muster::cli {

/// 0: as long as it takes.
struct ScreenSize {
  size_t columns = 0;
  size_t rows = 0;
};

/// Of the terminal that standard output is; a usual one's where it is none.
ScreenSize screen_size();

class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  ScreenSize size() const;

  /// Shows `picture`, lines without control characters, in the place of what was there.
  base::Result<void> show(std::string_view picture);

  /// Waits so long, or until somebody wants to leave: q, Ctrl-C, SIGTERM, or the keyboard is gone.
  /// Returns whether to go on.
  bool wait(std::chrono::milliseconds interval);

 private:
  bool key_says_leave() const;

  Interrupts interrupts_;
  termios before_{};
  bool has_keys_ = false;  ///< standard input is a terminal
};

/// The bytes that put `picture` in the place of what a terminal of so many rows shows; what does
/// not fit is left out. Pure.
std::string redraw(std::string_view picture, size_t rows);

/// The first `columns` code points of a line of valid UTF-8.
std::string_view cut_to(std::string_view line, size_t columns);

}  // namespace muster::cli
