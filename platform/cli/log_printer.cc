#include "cli/log_printer.h"

#include <algorithm>

#include "base/text.h"
#include "cli/log_colour.h"

namespace muster::cli {

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
    show(record.text, out);
  } else {
    out += record.text;
  }
  open_ = true;
  if (!record.continues) finish(out);
}

void LogPrinter::note(const std::string& name, const std::string& words, std::string& out) {
  finish(out);
  if (head_) head_(out);
  if (look_.prefix) out += name + " ";
  out += words + "\n";
}

void LogPrinter::finish(std::string& out) {
  if (!open_) return;
  if (terminal_.is_terminal) text_.finish(out);
  out += '\n';
  open_ = false;
}

void LogPrinter::begin_line(const job::LogRecord& record, std::string& out) {
  line_head_.clear();
  if (head_) head_(line_head_);
  if (look_.timestamps) line_head_ += base::to_rfc3339(record.time) + " ";
  if (look_.prefix) line_head_ += prefix_;
  if (record.stream == job::LogStream::kNotice) line_head_ += "muster: ";
  out += line_head_;
  shown_ = false;
  rewound_ = false;
}

/// Of what overwrites itself, what is left.
void LogPrinter::show(std::string_view text, std::string& out) {
  const size_t end = text.find_last_not_of('\r') + 1;
  const bool rewinds = end < text.size();
  text = text.substr(0, end);
  const size_t rewound = text.rfind('\r');
  if (rewound != std::string_view::npos) {
    text.remove_prefix(rewound + 1);
    rewound_ = true;
  }
  if (!text.empty()) {
    if (rewound_ && shown_) {
      text_.finish(out);
      out += "\r\x1b[K" + line_head_;
    }
    text_.append(text, out);
    shown_ = true;
    rewound_ = false;
  }
  rewound_ = rewound_ || rewinds;
}

void LogPrinter::remember(const job::LogRecord& record) {
  source_ = {record.task, record.host, record.rank, record.stream};
  known_ = true;
  text_ = LogText(terminal_.colour);
  std::string name = prefix_of(record);
  if (terminal_.is_terminal) name = safe_lines(name);
  prefix_ = terminal_.colour ? std::string(colour_of(record)) + name + kNoColour : name;
  prefix_ += ' ';
}

}  // namespace muster::cli
