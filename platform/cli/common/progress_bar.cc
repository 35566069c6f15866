#include "cli/common/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "cli/common/terminal.h"
#include "workspace/path_text.h"

namespace muster::cli {

namespace {

constexpr std::string_view kStartOfLine = "\r\x1b[K";

std::string cut_to_bytes(std::string line, size_t columns) {
  // Not between the bytes of one letter.
  const auto is_inside = [&](size_t at) {
    return at < line.size() && (static_cast<unsigned char>(line[at]) & 0xc0) == 0x80;
  };
  size_t end = std::min(line.size(), columns);
  while (end > 0 && is_inside(end)) --end;
  line.resize(end);
  return line;
}

std::string bar(int percent, size_t width) {
  const size_t full = width * static_cast<size_t>(percent) / 100;
  std::string text(full, '=');
  if (full < width) text += '>';
  text.resize(width, ' ');
  return "[" + text + "]";
}

}  // namespace

ProgressBar::ProgressBar() : on_terminal_(terminal_of(STDERR_FILENO).is_terminal) {}

ProgressBar::~ProgressBar() {
  clear();
}

void ProgressBar::show(std::string_view what, int64_t done, int64_t all) {
  if (is_due()) draw(progress_line(what, done, all, columns()));
}

void ProgressBar::show(std::string_view what, std::string_view line) {
  if (is_due()) draw(progress_line(what, line, columns()));
}

void ProgressBar::clear() {
  if (std::exchange(drawn_, false)) static_cast<void>(base::write_all(STDERR_FILENO, kStartOfLine));
}

/// A terminal that is written to more often only flickers.
bool ProgressBar::is_due() {
  constexpr std::chrono::milliseconds kBetween{50};
  if (!on_terminal_ || (drawn_ && Clock::now() - last_ < kBetween)) return false;
  last_ = Clock::now();
  return true;
}

void ProgressBar::draw(const std::string& line) {
  drawn_ = true;
  static_cast<void>(base::write_all(STDERR_FILENO, std::string(kStartOfLine) + line));
}

size_t ProgressBar::columns() const {
  constexpr size_t kUsual = 80;
  winsize window{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return kUsual;
  return window.ws_col;
}

std::string progress_line(std::string_view what, int64_t done, int64_t all, size_t columns) {
  constexpr size_t kMostBar = 40;
  constexpr size_t kLeastBar = 5;
  const int percent =
      all > 0 ? static_cast<int>(std::clamp<int64_t>(done, 0, all) * 100 / all) : 100;
  const std::string before = std::string(what) + " ";
  const std::string number = std::to_string(percent);
  const std::string after = std::string(5 - number.size(), ' ') + number + "%  " +
                            workspace::size_text(done) + " of " + workspace::size_text(all);
  const size_t used = before.size() + after.size() + 2;
  // The last column stays free: some terminals go to the next line as soon as it is written.
  if (columns < used + kLeastBar + 1) return cut_to_bytes(before + after.substr(2), columns - 1);
  return before + bar(percent, std::min(kMostBar, columns - used - 1)) + after;
}

std::string progress_line(std::string_view what, std::string_view line, size_t columns) {
  std::string text = std::string(what) + "  ";
  TerminalFilter filter;
  filter.append(line, text);
  filter.finish(text);
  std::erase(text, '\r');
  return cut_to_bytes(std::move(text), columns - 1);
}

}  // namespace muster::cli
