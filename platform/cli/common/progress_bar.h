// How far something has come, on one line of a terminal that is written over and over, and gone in
// the end. Where standard error is no terminal, nothing is written.
//
// I/O; not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::cli {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// "reading", bytes.
  void show(std::string_view what, int64_t done, int64_t all);
  /// A line of somebody else's.
  void show(std::string_view what, std::string_view line);
  /// Takes the line away, for what is there to stay.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due();
  void draw(const std::string& line);
  size_t columns() const;

  bool on_terminal_;
  bool drawn_ = false;
  Clock::time_point last_{};
};

/// "sending [=======>            ]  42%  430 MiB of 1 GiB", in so many columns at most. Pure.
std::string progress_line(std::string_view what, int64_t done, int64_t all, size_t columns);

/// "fetching  Receiving objects: 42%", as one line that a terminal only shows. Pure.
std::string progress_line(std::string_view what, std::string_view line, size_t columns);

}  // namespace muster::cli
