#include "cli/logs/log_printer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/wire.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/common/output.h"

namespace muster::cli::logs {

namespace {

constexpr char kEscape = '\x1b';
// The longest sequences that programs print have five numbers (24-bit colours).
constexpr size_t kLongestSequence = 48;

bool is_between(char letter, char first, char last) {
  return letter >= first && letter <= last;
}

/// Whether ESC [ ... `last` moves the cursor or erases (ECMA-48's control sequences).
bool lays_out(char last) {
  constexpr std::string_view kLayout = "ABCDEFGHJKSTdfhlnrsu";
  return kLayout.find(last) != std::string_view::npos;
}

/// Of ESC [ ... m: whether it makes text invisible (8). The numbers after 38, 48 and 58 define a
/// colour: 5 and its index, or 2 and three components.
bool conceals(std::string_view sequence) {
  std::vector<std::string> numbers = base::split(sequence.substr(2, sequence.size() - 3), ';');
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::string& number = numbers[i];
    if (number.find_first_not_of('0') != std::string::npos &&
        number.substr(number.find_first_not_of('0')) == "8") {
      return true;
    }
    const bool chooses_colour = number == "38" || number == "48" || number == "58";
    if (chooses_colour && i + 1 < numbers.size()) i += numbers[i + 1] == "2" ? 4 : 2;
  }
  return false;
}

}  // namespace

/// Adds `letter` to the sequence if it continues the sequence.
LogText::Look LogText::take(char letter) {
  if (sequence_.size() == 1) {
    if (letter != '[') return Look::kBroken;
    sequence_ += letter;
    return Look::kPart;
  }
  if (sequence_.size() >= kLongestSequence) return Look::kBroken;
  // Parameters and intermediate characters, then a final character.
  if (!is_between(letter, ' ', '~')) return Look::kBroken;
  sequence_ += letter;
  return is_between(letter, '@', '~') ? Look::kWhole : Look::kPart;
}

void LogText::end_sequence(std::string& out) {
  const std::string sequence = std::exchange(sequence_, {});
  const char last = sequence.back();
  const bool is_plain = sequence.find_first_not_of("0123456789;:", 2) == sequence.size() - 1;
  if (last == 'm' && is_plain) {
    if (!colour_ || conceals(sequence)) return;
    out += sequence;
    coloured_ = true;
  } else if (!lays_out(last)) {
    filter_.append(sequence, out);
  }
}

void LogText::append(std::string_view text, std::string& out) {
  while (!text.empty()) {
    if (sequence_.empty()) {
      const size_t plain = std::min(text.find(kEscape), text.size());
      filter_.append(text.substr(0, plain), out);
      text.remove_prefix(plain);
      if (text.empty()) return;
      filter_.finish(out);
      sequence_ = kEscape;
      text.remove_prefix(1);
      continue;
    }
    switch (take(text.front())) {
      case Look::kWhole:
        text.remove_prefix(1);
        end_sequence(out);
        break;
      case Look::kPart:
        text.remove_prefix(1);
        break;
      case Look::kBroken:  // not a control sequence: its bytes are shown
        filter_.append(std::exchange(sequence_, {}), out);
        break;
    }
  }
}

void LogText::finish(std::string& out) {
  filter_.append(std::exchange(sequence_, {}), out);
  filter_.finish(out);
  if (std::exchange(coloured_, false)) out += kNoColour;
}

void LogText::drop(std::string& out) {
  sequence_.clear();
  filter_ = TerminalFilter();
  if (std::exchange(coloured_, false)) out += kNoColour;
}

namespace {

// Readable on black and on white; red is reserved for errors.
constexpr std::array<std::string_view, 10> kTaskColours{
    "\x1b[32m", "\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[34m",
    "\x1b[92m", "\x1b[96m", "\x1b[93m", "\x1b[95m", "\x1b[94m"};

/// The number of "worker-3" after `role`.
std::optional<size_t> number_in(std::string_view task, std::string_view role) {
  if (!task.starts_with(role)) return std::nullopt;
  return base::number_of<size_t>(task.substr(role.size()));
}

/// For names that follow no pattern: FNV-1a over the bytes.
size_t hash_of(std::string_view name) {
  uint32_t hash = 2166136261U;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}

size_t place_of(const job::LogRecord& record) {
  if (record.rank) return static_cast<size_t>(*record.rank) + 1;
  if (const auto worker = number_in(record.task, "worker-")) return *worker + 1;
  if (const auto server = number_in(record.task, "ps-")) {
    return kTaskColours.size() - 1 - *server % kTaskColours.size();
  }
  for (const std::string_view leader : {"launcher", "main", "chief", "master"}) {
    if (record.task == leader) return 0;
  }
  return hash_of(record.task);
}

}  // namespace

std::string_view colour_of(const job::LogRecord& record) {
  return kTaskColours[place_of(record) % kTaskColours.size()];
}

void append_json(const job::LogRecord& record, Terminal terminal, std::string& out) {
  const size_t begin = out.size();
  api::append_log_record(out, record);
  out += '\n';
  if (!terminal.is_terminal) return;
  const std::string text = out.substr(begin);
  out.resize(begin);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (text[i] == '\xc2' && next >= 0x80 && next <= 0x9f) {
      out += next < 0x90 ? "\\u008" : "\\u009";
      out += "0123456789abcdef"[next & 15];
      ++i;
    } else if (text[i] == '\x7f') {
      out += "\\u007f";
    } else {
      out += text[i];
    }
  }
}

std::string prefix_of(const job::LogRecord& record) {
  if (!record.rank) return "[" + record.task + "]";
  return "[" + std::to_string(*record.rank) + (record.host.empty() ? "" : "@" + record.host) + "]";
}

namespace {

/// The columns of text that LogText has made safe: without the colours.
size_t columns_of(std::string_view shown) {
  constexpr size_t kMoreOfTab = 7;  // it fills up to eight columns
  size_t columns = 0;
  while (!shown.empty()) {
    const size_t plain = std::min(shown.find(kEscape), shown.size());
    const std::string_view text = shown.substr(0, plain);
    columns += display_width(text);
    columns += kMoreOfTab * static_cast<size_t>(std::count(text.begin(), text.end(), '\t'));
    shown.remove_prefix(plain);
    if (!shown.empty()) shown.remove_prefix(std::min(shown.find('m'), shown.size() - 1) + 1);
  }
  return columns;
}

}  // namespace

/// Takes the next piece of the line, of which only the last state counts if it overwrites itself.
/// Returns the text that was added at the end; nothing: it has replaced the earlier text.
std::optional<std::string_view> LogPrinter::Line::add(std::string_view more) {
  const size_t end = more.find_last_not_of('\r') + 1;
  const bool rewinds = end < more.size();
  more = more.substr(0, end);
  bool replaces = false;
  if (!more.empty()) {
    if (const size_t at = more.rfind('\r'); at != std::string_view::npos) {
      more.remove_prefix(at + 1);
      rewound = true;
    }
    replaces = rewound && !text.empty();
    if (replaces) text.clear();
    text += more;
    rewound = false;
  }
  rewound = rewound || rewinds;
  return replaces ? std::nullopt : std::optional(more);
}

LogPrinter::Source LogPrinter::source_of(const job::LogRecord& record) {
  return {record.attempt, record.task, record.rank, record.stream};
}

std::string LogPrinter::head_of(const job::LogRecord& record) {
  std::string head;
  if (head_) head_(head);
  if (look_.timestamps) head += base::to_rfc3339(record.time) + " ";
  if (look_.prefix) {
    const bool is_known = prefixed_ && prefixed_->task == record.task &&
                          prefixed_->host == record.host && prefixed_->rank == record.rank;
    if (!is_known) {
      prefixed_ = {.task = record.task, .host = record.host, .rank = record.rank};
      std::string name = prefix_of(record);
      if (terminal_.is_terminal) name = safe_lines(name);
      if (terminal_.colour) name = std::string(colour_of(record)) + name + kNoColour;
      prefix_ = name + " ";
    }
    head += prefix_;
  }
  if (record.stream == job::LogStream::kNotice) head += "muster: ";
  return head;
}

LogPrinter::Line& LogPrinter::line_of(const job::LogRecord& record) {
  const auto [line, is_new] = lines_.try_emplace(source_of(record));
  if (is_new) line->second.head = head_of(record);
  return line->second;
}

void LogPrinter::print(const job::LogRecord& record, std::string& out) {
  if (record.continues) return continue_line(line_of(record), record.text, out);
  const auto line = lines_.empty() ? lines_.end() : lines_.find(source_of(record));
  if (line == lines_.end()) return print_whole(record, out);
  end(line, record.text, out);
}

void LogPrinter::print_whole(const job::LogRecord& record, std::string& out) {
  hide(out);
  out += head_of(record);
  if (terminal_.is_terminal) {
    Line line;
    line.add(record.text);
    text_ = LogText(terminal_.colour);
    text_.append(line.text, out);
    text_.finish(out);
  } else {
    out += record.text;
  }
  out += '\n';
  draw_latest(out);
}

/// Appends text to the line at the end of the terminal.
void LogPrinter::append_text(std::string_view text, std::string& out) {
  const size_t begin = out.size();
  text_.append(text, out);
  width_ += columns_of(std::string_view(out).substr(begin));
}

/// Makes the line the last of the output.
void LogPrinter::draw(Line& line, std::string& out) {
  hide(out);
  shown_ = &line;
  line.is_cut = false;
  out += line.head;
  if (terminal_.is_terminal) {
    text_ = LogText(terminal_.colour);
    width_ = columns_of(line.head);
    append_text(line.text, out);
  } else {
    out += line.text;
    held_ -= line.text.size();
    line.text.clear();
  }
}

void LogPrinter::hide(std::string& out) {
  if (shown_ == nullptr) return;
  if (terminal_.is_terminal && width_ < terminal_.columns) {
    text_.drop(out);  // these bytes might begin another row
    out += "\r\x1b[K";
  } else {
    if (terminal_.is_terminal) text_.finish(out);
    out += '\n';
    shown_->text.clear();
    shown_->is_cut = true;
  }
  shown_ = nullptr;
}

void LogPrinter::draw_latest(std::string& out) {
  if (!terminal_.is_terminal || lines_.empty()) return;
  Line* latest = nullptr;
  for (auto& [source, line] : lines_) {
    if (line.text.empty()) continue;
    if (latest == nullptr || line.changed > latest->changed) latest = &line;
  }
  if (latest != nullptr) draw(*latest, out);
}

void LogPrinter::continue_line(Line& line, std::string_view text, std::string& out) {
  line.changed = ++changes_;
  if (!terminal_.is_terminal) {
    if (shown_ == &line) {
      out += text;
    } else {
      line.text += text;
      held_ += text.size();
      if (line.text.size() >= kMostHeldOfLine || held_ > kMostHeld) draw(line, out);
    }
    return;
  }
  const auto added = line.add(text);
  if (shown_ != &line) {
    draw(line, out);
  } else if (added) {
    append_text(*added, out);
  } else {
    text_.drop(out);
    out += "\r\x1b[K";
    shown_ = nullptr;
    draw(line, out);
  }
  // It is never drawn again: it fills more than one row.
  if (line.text.size() > kMostHeldOfLine) line.text.resize(kMostHeldOfLine / 2);
}

/// Appends the last piece of the line, and its newline.
void LogPrinter::end(Lines::iterator ended, std::string_view text, std::string& out) {
  Line& line = ended->second;
  const bool has_more = !line.text.empty() || !text.empty() || !line.is_cut;
  if (has_more || shown_ == &line) {
    continue_line(line, text, out);
    if (shown_ != &line) draw(line, out);
    if (terminal_.is_terminal) text_.finish(out);
    out += '\n';
    shown_ = nullptr;
  }
  lines_.erase(ended);
  if (shown_ == nullptr) draw_latest(out);
}

void LogPrinter::end_line(const job::LogRecord& of, std::string& out) {
  const auto line = lines_.find(source_of(of));
  if (line != lines_.end()) end(line, "", out);
}

void LogPrinter::note(const std::string& name, const std::string& words, std::string& out) {
  hide(out);
  if (head_) head_(out);
  if (look_.prefix) out += name + " ";
  out += words + "\n";
  draw_latest(out);
}

bool LogPrinter::holds() const {
  if (terminal_.is_terminal) return false;
  return std::any_of(lines_.begin(), lines_.end(),
                     [](const auto& entry) { return !entry.second.text.empty(); });
}

void LogPrinter::release(std::string& out) {
  if (terminal_.is_terminal) return;
  for (auto& [source, line] : lines_) {
    if (!line.text.empty() && std::exchange(line.is_old, true)) draw(line, out);
    line.is_old = line.is_old && !line.text.empty();
  }
}

void LogPrinter::finish(std::string& out) {
  // The line at the end of the output first: it need not be drawn again.
  while (!lines_.empty()) {
    const auto shown = std::find_if(lines_.begin(), lines_.end(),
                                    [&](const auto& entry) { return &entry.second == shown_; });
    end(shown == lines_.end() ? lines_.begin() : shown, "", out);
  }
}

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
         record.attempt == last_->attempt && record.text == last_->text &&
         !open_.contains({record.attempt, record.task, record.rank, record.stream});
}

void LogFold::print(const job::LogRecord& record, std::string& out) {
  if (repeats_the_last(record)) {
    ++count_;
    repeated_ = record;
  } else {
    print_count(out);
    printer_.print(record, out);
    ranks_.clear();
    tasks_.clear();
    last_.reset();
    const Source source{record.attempt, record.task, record.rank, record.stream};
    const bool ends_line = open_.erase(source) > 0;
    if (record.continues) open_.insert(source);
    const bool may_repeat = !record.continues && !ends_line && !is_blank(record.text) &&
                            record.stream != job::LogStream::kNotice;
    if (may_repeat) last_ = record;
  }
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

void LogFold::print_count(std::string& out) {
  const uint64_t count = std::exchange(count_, 0);
  if (count == 0) return;
  // Printing the line is as short as printing the count.
  if (count == 1) return printer_.print(repeated_, out);
  const std::string words = "... (repeated " + std::to_string(count) + " times)";
  if (ranks_.size() + tasks_.size() > 1) return printer_.note(safe_lines(names()), words, out);
  repeated_.text = words;
  printer_.print(repeated_, out);
}

}  // namespace muster::cli::logs
