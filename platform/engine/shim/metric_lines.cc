#include "engine/shim/metric_lines.h"

#include <string.h>

#include <algorithm>

#include "base/units.h"
#include "engine/shim/metric_intake.h"

namespace muster::engine {

namespace {

// A tag, a marker and a report.
constexpr size_t kLongestLineTag = 128;
constexpr size_t kLongestLine = kLongestLineTag + kMetricMarker.size() + kLongestReport;

/// memmem(3) rather than find(): logs are full of colons, at which find() stops each time.
size_t find_marker(std::string_view text, size_t from) {
  const void* found =
      ::memmem(text.data() + from, text.size() - from, kMetricMarker.data(), kMetricMarker.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

/// A progress bar returns to the beginning of its line: what counts stands behind that.
std::string_view behind_returns(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const size_t last = line.rfind('\r');
  return last == std::string_view::npos ? line : line.substr(last + 1);
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The digits that `text` ends with.
std::optional<int> number_at_end(std::string_view text) {
  const size_t last_other = text.find_last_not_of("0123456789");
  return base::number_of<int>(text.substr(last_other + 1));  // npos + 1 is 0
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

struct Tag {
  bool is_one = false;
  std::optional<int> rank;
};

/// [1,0] and [prterun-host-7@1,0]: job and rank; [0] and [rank0]: the rank. What else stands in
/// brackets ([default0], of torchrun) is no rank of the job.
Tag tag_in_brackets(std::string_view inside) {
  const size_t comma = inside.rfind(',');
  const std::string_view rank = comma != std::string_view::npos ? inside.substr(comma + 1)
                                : inside.starts_with("rank")    ? inside.substr(4)
                                                                : inside;
  return {.is_one = true, .rank = is_number(rank) ? number_at_end(rank) : std::nullopt};
}

Tag read_tag(std::string_view text) {
  text = without_blanks(text);
  if (text.empty()) return {.is_one = true};
  if (text.size() > kLongestLineTag) return {};
  if (text.ends_with(':')) text.remove_suffix(1);
  const size_t stream = std::min(text.rfind("<stdout>"), text.rfind("<stderr>"));
  const bool names_stream = stream != std::string_view::npos;
  if (names_stream) text = text.substr(0, stream);
  const size_t bracket = text.rfind('[');
  if (text.ends_with(']') && bracket != std::string_view::npos && (bracket == 0 || names_stream)) {
    return tag_in_brackets(text.substr(bracket + 1, text.size() - bracket - 2));
  }
  if (is_number(text)) return {.is_one = true, .rank = number_at_end(text)};
  return {.is_one = names_stream};
}

}  // namespace

std::optional<PrintedReport> report_in_line(std::string_view line) {
  line = behind_returns(line);
  const size_t at = find_marker(line, 0);
  if (at == std::string_view::npos) return std::nullopt;
  const Tag tag = read_tag(line.substr(0, at));
  if (!tag.is_one) return std::nullopt;
  return PrintedReport{.text = line.substr(at + kMetricMarker.size()), .rank = tag.rank};
}

void MetricLines::begin_line(std::string_view piece) {
  line_.clear();
  too_long_ = false;
  continue_line(piece);
}

void MetricLines::continue_line(std::string_view piece) {
  // What a return wipes out counts no more. One at the end may be half of a line's end.
  const size_t last =
      piece.size() < 2 ? std::string_view::npos : piece.rfind('\r', piece.size() - 2);
  if (last != std::string_view::npos) {
    piece.remove_prefix(last + 1);
    line_.clear();
    too_long_ = false;
  }
  too_long_ = too_long_ || line_.size() + piece.size() > kLongestLine;
  if (too_long_) {
    line_.clear();
  } else {
    line_ += piece;
  }
}

void MetricLines::look_at(std::string_view bytes, const Found& found) {
  const auto tell = [&](std::string_view line) {
    if (const auto report = report_in_line(line)) found(*report);
  };
  if (!line_.empty() || too_long_) {
    const size_t end = bytes.find('\n');
    continue_line(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    tell(line_);
    bytes.remove_prefix(end + 1);
  }
  const size_t whole = bytes.rfind('\n') + 1;  // 0 where there is none
  for (size_t at = find_marker(bytes, 0); at < whole;) {
    const size_t before = bytes.rfind('\n', at);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const size_t end = bytes.find('\n', at);
    tell(bytes.substr(begin, end - begin));
    at = find_marker(bytes, end);
  }
  begin_line(bytes.substr(whole));
}

void MetricLines::end(const Found& found) {
  if (const auto report = report_in_line(line_)) found(*report);
  begin_line({});
}

}  // namespace muster::engine
