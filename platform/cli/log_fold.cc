#include "cli/log_fold.h"

#include <utility>

namespace muster::cli {

namespace {

/// "0-3,7"
std::string ranges_of(const std::set<int>& ranks) {
  std::string text;
  for (auto rank = ranks.begin(); rank != ranks.end();) {
    const int first = *rank;
    int last = first;
    for (++rank; rank != ranks.end() && *rank == last + 1; ++rank) last = *rank;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
  }
  return text;
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r") == std::string::npos;
}

}  // namespace

bool LogFold::repeats_the_last(const job::LogRecord& record) const {
  return last_ && !record.continues && record.stream == last_->stream &&
         record.attempt == last_->attempt && record.text == last_->text;
}

void LogFold::print(const job::LogRecord& record, std::string& out) {
  if (repeats_the_last(record)) {
    ++count_;
    repeated_ = record;
  } else {
    tell(out);
    printer_.print(record, out);
    ranks_.clear();
    tasks_.clear();
    last_.reset();
    const bool may_repeat = !record.continues && !continues_ && !is_blank(record.text) &&
                            record.stream != job::LogStream::kNotice;
    if (may_repeat) last_ = record;
  }
  continues_ = record.continues;
  if (!last_) return;
  if (record.rank) {
    ranks_.insert(*record.rank);
  } else {
    tasks_.insert(record.task);
  }
}

/// "[0-3,7, launcher]"
std::string LogFold::names() const {
  std::string names = ranges_of(ranks_);
  for (const std::string& task : tasks_) names += (names.empty() ? "" : ", ") + task;
  return "[" + names + "]";
}

void LogFold::tell(std::string& out) {
  const uint64_t count = std::exchange(count_, 0);
  if (count == 0) return;
  if (count == 1) return printer_.print(repeated_, out);  // as short as what would be said of it
  const std::string words = "... (repeated " + std::to_string(count) + " times)";
  if (ranks_.size() + tasks_.size() > 1) return printer_.note(safe_lines(names()), words, out);
  repeated_.text = words;
  printer_.print(repeated_, out);
}

}  // namespace muster::cli
