#include "control/log_tail.h"

#include <algorithm>

namespace muster::control {

namespace {

/// A run of two bytes costs more than these.
template <class Held>
size_t cost_of(const Held& run) {
  return sizeof(Held) + run.bytes.size();
}

size_t count_lines(std::string_view bytes) {
  const auto newlines = static_cast<size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  return newlines + (bytes.ends_with('\n') ? 0 : 1);
}

}  // namespace

void LogTail::add(const RunSplitter::Run& run, const std::shared_ptr<LogCounts>& counts) {
  runs_.push_back({.key = run.key,
                   .source = run.source,
                   .time = run.time,
                   .bytes = std::string(run.bytes),
                   .lines = count_lines(run.bytes),
                   .counts = counts});
  lines_ += runs_.back().lines;
  cost_ += cost_of(runs_.back());
  // Whole runs, for speed: trim() sees to the rest.
  while (!runs_.empty() && (lines_ - runs_.front().lines >= most_lines_ ||
                            cost_ - cost_of(runs_.front()) >= kMostTailBytes)) {
    drop_first();
  }
}

void LogTail::cut_first(size_t bytes, size_t lines) {
  Held& first = runs_.front();
  if (first.counts != nullptr) (*first.counts)[first.key] += bytes;
  first.bytes.erase(0, bytes);
  first.lines -= lines;
  cost_ -= bytes;
  lines_ -= lines;
}

void LogTail::drop_first() {
  cut_first(runs_.front().bytes.size(), runs_.front().lines);
  cost_ -= cost_of(runs_.front());
  runs_.pop_front();
}

void LogTail::trim() {
  if (runs_.empty()) return;
  const std::string_view first = runs_.front().bytes;
  size_t cut = 0;
  size_t lines = 0;
  while (cut < first.size() && (lines_ - lines > most_lines_ || cost_ - cut > kMostTailBytes)) {
    cut =
        first.find('\n', cut) == std::string_view::npos ? first.size() : first.find('\n', cut) + 1;
    ++lines;
  }
  if (cut == first.size()) return drop_first();
  cut_first(cut, lines);
}

void LogTail::take_some(job::LogBatch& batch, size_t bytes) {
  size_t taken = 0;
  while (!runs_.empty() && taken < bytes) {
    const Held& first = runs_.front();
    batch.add(first.source, first.time, first.bytes);
    taken += first.bytes.size();
    drop_first();
  }
}

}  // namespace muster::control
