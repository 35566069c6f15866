#include "session/timeline.h"

#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>

#include "transport/socket.h"

namespace muster::collective::session {
namespace {

std::string json_quoted(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      // A name need not be UTF-8, but the file must be.
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      json += escaped;
    } else {
      json += c;
    }
  }
  return json + '"';
}

std::string microseconds(Deadline::duration time) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(nanoseconds) / 1000);
  return text;
}

// ALLREDUCE for all_reduce, as in Horovod.
std::string horovod_name(std::string_view operation) {
  std::string name;
  for (const char c : operation) {
    if (c != '_') name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

// The system's time at time 0 of the events' clock.
std::string epoch_microseconds() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const auto since_start = Clock::now().time_since_epoch();
  return std::to_string(
      std::chrono::duration_cast<std::chrono::microseconds>(since_epoch - since_start).count());
}

std::string with_rank(std::string path, int rank) {
  for (std::size_t at = path.find("%r"); at != std::string::npos; at = path.find("%r", at)) {
    path.replace(at, 2, std::to_string(rank));
  }
  return path;
}

}  // namespace

Result<std::unique_ptr<Timeline>> Timeline::open(const std::string& path, int rank,
                                                 const std::string& host) {
  const std::string name = with_rank(path, rank);
  Descriptor file(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return system_error("cannot write the timeline " + name, errno);
  std::unique_ptr<Timeline> timeline(new Timeline(std::move(file), rank));
  timeline->append(R"({"ph":"M","name":"process_name","pid":)" + std::to_string(rank) +
                   R"(,"args":{"name":)" +
                   json_quoted("rank " + std::to_string(rank) + " on host " + host) +
                   R"(,"start_time_since_epoch_in_micros":)" + epoch_microseconds() + "}}");
  timeline->writer_ = std::thread([&writer = *timeline] { writer.serve(); });
  return timeline;
}

Timeline::Timeline(Descriptor file, int rank) : file_(std::move(file)), rank_(rank) {}

Timeline::~Timeline() {
  static_cast<void>(close());
}

Status Timeline::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  if (writer_.joinable()) writer_.join();
  if (error_ != 0) return system_error("cannot write the timeline", error_);
  return {};
}

void Timeline::append(std::string_view event) {
  pending_ += is_first_ ? "[\n" : ",\n";
  pending_ += event;
  is_first_ = false;
}

int Timeline::lane_of(std::string_view name) {
  const auto [found, is_new] =
      lanes_.try_emplace(std::string(name), static_cast<int>(lanes_.size()) + 1);
  if (is_new) {
    append(R"({"ph":"M","name":"thread_name","pid":)" + std::to_string(rank_) + R"(,"tid":)" +
           std::to_string(found->second) + R"(,"args":{"name":)" + json_quoted(name) + "}}");
  }
  return found->second;
}

void Timeline::phase(std::string_view what, int lane, Deadline begin, Deadline end,
                     const std::string& arguments) {
  append(R"({"ph":"X","name":)" + json_quoted(what) + R"(,"pid":)" + std::to_string(rank_) +
         R"(,"tid":)" + std::to_string(lane) + R"(,"ts":)" +
         microseconds(begin.time_since_epoch()) + R"(,"dur":)" + microseconds(end - begin) +
         R"(,"args":{)" + arguments + "}}");
}

void Timeline::add(const TimelineEvent& event) {
  {
    const std::lock_guard lock(mutex_);
    const int lane = lane_of(event.name);
    const std::string bytes = R"("bytes":)" + std::to_string(event.bytes);
    const std::string operation = horovod_name(event.operation);
    phase("NEGOTIATE_" + operation, lane, event.handed_over, event.agreed,
          R"("last_rank":)" + std::to_string(event.last_rank));
    if (event.call != 0) {
      phase(operation, lane, event.agreed, event.ended,
            bytes + R"(,"failed":)" + (event.failed ? "true" : "false"));
      phase("QUEUE", lane, event.agreed, event.begun, bytes);
      phase("EXECUTE", lane, event.begun, event.ended, R"("call":)" + std::to_string(event.call));
    }
  }
  wake_.notify_one();
}

void Timeline::mark_cycle(Deadline begun) {
  {
    const std::lock_guard lock(mutex_);
    append_mark("CYCLE_START", begun, "");
  }
  wake_.notify_one();
}

void Timeline::mark(std::string_view what, std::string_view sentence, Deadline now) {
  {
    const std::lock_guard lock(mutex_);
    append_mark(what, now, R"(,"args":{"what":)" + json_quoted(sentence) + "}");
  }
  wake_.notify_one();
}

void Timeline::append_mark(std::string_view what, Deadline at, const std::string& arguments) {
  append(R"({"ph":"i","name":)" + json_quoted(what) + R"(,"s":"g","pid":)" + std::to_string(rank_) +
         R"(,"ts":)" + microseconds(at.time_since_epoch()) + arguments + "}");
}

void Timeline::write_all(std::string_view text) {
  while (!text.empty() && error_ == 0) {
    const ssize_t written = ::write(file_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      error_ = errno;
    } else {
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }
}

void Timeline::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return closing_ || !pending_.empty(); });
    const bool last = closing_;
    std::string text = std::exchange(pending_, {});
    if (last) text += "\n]\n";
    lock.unlock();
    write_all(text);
    lock.lock();
    if (last) return;
  }
}

}  // namespace muster::collective::session
