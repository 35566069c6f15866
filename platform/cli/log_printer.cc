#include "cli/log_printer.h"

#include <array>
#include <cstdint>
#include <string_view>

#include "base/text.h"

namespace muster::cli {

namespace {

/// The same colour for the same prefix in every run: FNV-1a over its bytes.
std::string_view colour_of(std::string_view prefix) {
  // Readable on black and on white alike; red is left to errors.
  constexpr std::array<std::string_view, 5> kColours{"\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[35m",
                                                     "\x1b[36m"};
  uint32_t hash = 2166136261U;
  for (const char letter : prefix) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return kColours[hash % kColours.size()];
}

constexpr std::string_view kPlain = "\x1b[0m";

}  // namespace

std::string prefix_of(const job::LogRecord& record) {
  if (!record.rank) return "[" + record.task + "]";
  return "[" + std::to_string(*record.rank) + "@" + record.host + "]";
}

bool LogPrinter::Source::is_of(const job::LogRecord& record) const {
  return task == record.task && rank == record.rank && stream == record.stream &&
         host == record.host;
}

void LogPrinter::print(const job::LogRecord& record, std::string& out) {
  const bool same = known_ && source_.is_of(record);
  if (open_ && !same) finish(out);
  if (!same) remember(record);
  if (!open_) begin_line(record, out);
  if (terminal_.is_terminal) {
    filter_.append(record.text, out);
  } else {
    out += record.text;
  }
  open_ = true;
  if (!record.continues) finish(out);
}

void LogPrinter::finish(std::string& out) {
  if (open_) out += '\n';
  open_ = false;
}

void LogPrinter::begin_line(const job::LogRecord& record, std::string& out) {
  if (head_) head_(out);
  if (look_.timestamps) out += base::to_rfc3339(record.time) + " ";
  if (look_.prefix) out += prefix_;
  if (record.stream == job::LogStream::kNotice) out += "muster: ";
}

void LogPrinter::remember(const job::LogRecord& record) {
  source_ = {record.task, record.host, record.rank, record.stream};
  known_ = true;
  filter_ = {};
  std::string name = prefix_of(record);
  if (terminal_.is_terminal) name = safe_lines(name);
  prefix_ = terminal_.colour ? std::string(colour_of(name)) + name + std::string(kPlain) : name;
  prefix_ += ' ';
}

}  // namespace muster::cli
