#include "engine/shim/metric_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/files.h"
#include "base/units.h"

namespace muster::engine {

namespace {

constexpr std::chrono::minutes kKeptWhole{1};
// Lines of a year, at this distance, are few.
constexpr std::chrono::hours kWidest{24};

struct Line {
  std::string_view text;  ///< with its newline
  base::Time time;
  size_t kind = 0;
};

/// A line's rank and names, without the values: " - cpu_percent memory_bytes".
std::string kind_of(std::string_view line) {
  std::string kind;
  bool in_value = false;
  for (const char c : line.substr(std::min(line.find(' '), line.size()))) {
    if (c == '=') in_value = true;
    if (c == ' ') in_value = false;
    if (!in_value) kind += c;
  }
  return kind;
}

base::Time time_of_line(std::string_view line) {
  const auto count = base::number_of<int64_t>(line.substr(0, line.find(' ')));
  return base::Time(std::chrono::nanoseconds(count.value_or(0)));
}

/// Newest first.
std::vector<Line> lines_newest_first(std::string_view log) {
  std::vector<Line> lines;
  std::unordered_map<std::string, size_t> kinds;
  for (size_t end = log.find('\n'); end != std::string_view::npos; end = log.find('\n')) {
    const std::string_view text = log.substr(0, end + 1);
    const size_t kind = kinds.emplace(kind_of(text), kinds.size()).first->second;
    lines.push_back({.text = text, .time = time_of_line(text), .kind = kind});
    log.remove_prefix(end + 1);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

size_t total_size_of(const std::vector<Line>& lines) {
  size_t size = 0;
  for (const Line& line : lines) size += line.text.size();
  return size;
}

/// Those from `whole` on, and of the older ones those that are `distance` away from the next of
/// their kind.
std::vector<Line> spaced(const std::vector<Line>& lines, base::Time whole,
                         std::chrono::nanoseconds distance) {
  std::vector<Line> kept;
  std::unordered_map<size_t, base::Time> next;
  for (const Line& line : lines) {
    const auto [found, is_newest] = next.emplace(line.kind, line.time);
    if (!is_newest && line.time < whole && found->second - line.time < distance) continue;
    found->second = line.time;
    kept.push_back(line);
  }
  return kept;
}

std::vector<Line> thinned(const std::vector<Line>& lines, base::Time now, size_t most) {
  std::vector<Line> kept = lines;
  for (const base::Time whole : {now - kKeptWhole, base::Time::max()}) {
    std::chrono::nanoseconds distance = std::chrono::seconds(1);
    for (; total_size_of(kept) > most && distance <= kWidest; distance *= 2) {
      kept = spaced(kept, whole, distance);
    }
  }
  for (size_t size = total_size_of(kept); size > most; kept.pop_back())
    size -= kept.back().text.size();
  return kept;
}

}  // namespace

std::string thinned_log(std::string_view log, base::Time now, size_t most) {
  const std::vector<Line> kept = thinned(lines_newest_first(log), now, most);
  std::string text;
  text.reserve(total_size_of(kept));
  for (auto line = kept.rbegin(); line != kept.rend(); ++line) text += line->text;
  return text;
}

MetricWriter::MetricWriter(std::filesystem::path file, int64_t most)
    : path_(std::move(file)), most_(most) {}

bool MetricWriter::is_open() {
  if (file_) return true;
  file_ = base::UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  size_ = file_ ? ::lseek(file_.get(), 0, SEEK_END) : 0;
  return static_cast<bool>(file_);
}

// To three quarters: thinning reads and writes all of the file, and is to be seldom. Readers see
// the old file or the new one, never half of it.
bool MetricWriter::thin(base::Time now) {
  const auto log = base::read_file(path_);
  if (!log) return false;
  const std::string text = thinned_log(*log, now, static_cast<size_t>(most_ / 4 * 3));
  if (!base::write_file(path_, text)) return false;
  file_.reset();
  return is_open();
}

void MetricWriter::write(const MetricSample& sample) {
  if (!is_open()) return;
  const std::string line = encode_sample(sample);
  const auto length = static_cast<int64_t>(line.size());
  if (size_ + length > most_ && (!thin(sample.time) || size_ + length > most_)) return;
  if (base::write_all(file_.get(), line)) {
    size_ += length;
  } else if (::ftruncate(file_.get(), size_) == 0) {
    ::lseek(file_.get(), size_, SEEK_SET);
  }
}

}  // namespace muster::engine
