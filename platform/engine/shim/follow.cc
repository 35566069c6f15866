#include "engine/shim/follow.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/files.h"
#include "base/units.h"
#include "engine/log_frame.h"
#include "engine/rank_files.h"
#include "engine/shim/modes.h"

namespace muster::engine {

using base::UniqueFd;

// --- records

namespace {

bool is_known(char kind) {
  switch (static_cast<FollowKind>(kind)) {
    case FollowKind::kRunning:
    case FollowKind::kRefused:
    case FollowKind::kAnswered:
    case FollowKind::kMpi:
    case FollowKind::kRank:
    case FollowKind::kLog:
    case FollowKind::kLogStart:
    case FollowKind::kMetrics:
    case FollowKind::kExit:
      return true;
  }
  return false;
}

/// nullopt: the frame is not a record.
std::optional<FollowRecord> record_of(const base::Frame& frame) {
  if (frame.bytes.size() < kFollowOffset || !is_known(frame.tag)) return std::nullopt;
  return FollowRecord{.kind = static_cast<FollowKind>(frame.tag),
                      .offset = base::little_endian<kFollowOffset>(frame.bytes.data()),
                      .bytes = std::string(frame.bytes.substr(kFollowOffset))};
}

}  // namespace

std::string encode(const FollowRecord& record) {
  std::string text;
  text.reserve(base::kFrameHead + kFollowOffset + record.bytes.size());
  const size_t begin = base::begin_frame(text, static_cast<char>(record.kind));
  base::append_little_endian(text, record.offset, kFollowOffset);
  text += record.bytes;
  base::end_frame(text, begin);
  return text;
}

std::optional<FollowRecord> FollowReader::next() {
  if (broken_) return std::nullopt;
  const auto frame = frames_.front();
  broken_ = !frame;
  if (broken_ || !*frame) return std::nullopt;
  auto record = record_of(**frame);
  frames_.pop(**frame);
  broken_ = !record;
  return record;
}

// --- changes of folders

namespace {

constexpr std::chrono::nanoseconds kTurn = std::chrono::milliseconds(200);

}  // namespace

FolderWatch::FolderWatch(bool asks_kernel) {
  if (asks_kernel) inotify_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify_) take_turns();
}

void FolderWatch::take_turns() {
  inotify_.reset();
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const timespec turn{.tv_sec = 0, .tv_nsec = kTurn.count()};
  const itimerspec turns{.it_interval = turn, .it_value = turn};
  ::timerfd_settime(timer_.get(), 0, &turns, nullptr);
}

bool FolderWatch::add(const std::filesystem::path& folder) {
  constexpr uint32_t kChanges = IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR;
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  const int number = inotify_ ? ::inotify_add_watch(inotify_.get(), folder.c_str(), kChanges) : -1;
  if (inotify_ && number < 0) take_turns();
  folders_[number] = folder;
  changes_[folder].all = true;
  return true;
}

void FolderWatch::read() {
  uint64_t turns = 0;
  if (timer_ && ::read(timer_.get(), &turns, sizeof turns) > 0) {
    for (auto& [folder, changes] : changes_) changes.all = true;
  }
  alignas(inotify_event) std::array<char, 16 << 10> buffer;
  ssize_t count = 0;
  while ((count = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0) {
    for (size_t at = 0; at < static_cast<size_t>(count);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += sizeof(inotify_event) + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) {
        for (auto& [folder, changes] : changes_) changes.all = true;
      } else if (event->len > 0) {
        changes_[folders_[event->wd]].names.insert(event->name);
      }
    }
  }
}

FolderWatch::Changes FolderWatch::take(const std::filesystem::path& folder) {
  read();
  const auto found = changes_.find(folder);
  return found == changes_.end() ? Changes() : std::exchange(found->second, {});
}

bool FolderWatch::has_changes() const {
  return std::any_of(changes_.begin(), changes_.end(), [](const auto& entry) {
    return entry.second.all || !entry.second.names.empty();
  });
}

// --- the follower

namespace {

/// Until a log is read again for which there was no free descriptor, in milliseconds.
constexpr int kPauseOfReads = 200;

/// The output stream. Detects that no process reads it any more.
class FollowOutput {
 public:
  explicit FollowOutput(const FollowPlan& plan) : output_(plan.output), hang_up_(plan.hang_up) {}

  bool is_read() const { return is_read_; }

  void write(FollowKind kind, uint64_t offset, std::string_view bytes) {
    write(encode({.kind = kind, .offset = offset, .bytes = std::string(bytes)}));
  }

  /// Writes any number of bytes of a file, as one or more records.
  void write_all(FollowKind kind, uint64_t offset, std::string_view bytes) {
    for (size_t at = 0; at < bytes.size() && is_read_; at += kMaxFollowRecord) {
      write(kind, offset + at, bytes.substr(at, kMaxFollowRecord));
    }
  }

  /// Waits until `descriptor` is readable or the stream has no reader, or so long.
  void wait_for(int descriptor, int milliseconds = -1) {
    std::array<pollfd, 3> watched{
        {{output_, 0, 0}, {hang_up_, POLLIN, 0}, {descriptor, POLLIN, 0}}};
    while (::poll(watched.data(), watched.size(), milliseconds) < 0 && errno == EINTR) continue;
    check_ends(watched[0].revents, watched[1].revents);
  }

 private:
  // A pipe that poll() reports as writable takes at least so many bytes at once.
  static constexpr size_t kStep = PIPE_BUF;

  void write(std::string_view bytes) {
    while (!bytes.empty() && is_read_) {
      std::array<pollfd, 2> watched{{{output_, POLLOUT, 0}, {hang_up_, POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      check_ends(watched[0].revents & ~POLLOUT, watched[1].revents);
      if ((watched[0].revents & POLLOUT) == 0) continue;
      const ssize_t count = ::write(output_, bytes.data(), std::min(bytes.size(), kStep));
      if (count < 0 && errno != EAGAIN && errno != EINTR) is_read_ = false;
      bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    }
  }

  /// Only the end of `of_hang_up` counts; bytes that arrive there are dropped.
  void check_ends(int of_output, int of_hang_up) {
    if ((of_output & (POLLERR | POLLHUP | POLLNVAL)) != 0) is_read_ = false;
    std::array<char, 256> ignored;
    if (of_hang_up != 0 && ::read(hang_up_, ignored.data(), ignored.size()) <= 0) is_read_ = false;
  }

  int output_;
  int hang_up_;
  bool is_read_ = true;
};

/// Writes what a log has grown by: only whole frames, since the log writer may take back an
/// incomplete one.
class LogRecords {
 public:
  LogRecords(const TaskFolder& folder, uint64_t written) : folder_(folder), written_(written) {}

  void write(FollowOutput& output) {
    if (!cursor_ && !open()) return;
    LogFrame frame;
    // No reader can read a log beyond damage: the loop ends there, too.
    for (auto more = cursor_->next(frame); !more || *more; more = cursor_->next(frame)) {
      if (more) {
        take(frame, output);
      } else if (more.error().code == base::ErrorCode::kExhausted) {
        output.wait_for(-1, kPauseOfReads);
      } else {
        break;
      }
      if (!output.is_read()) return;
    }
    send(output);
    write_start(output);
  }

 private:
  bool open() {
    UniqueFd file(::open(folder_.log().c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return false;
    cursor_.emplace(std::move(file), folder_.log_start());
    return true;
  }

  void take(const LogFrame& frame, FollowOutput& output) {
    const uint64_t begin = std::exchange(read_, read_ + size_in_log(frame));
    if (frame.cut > 0) {
      send(output);
      written_ = std::max(written_, read_);
      return write_start(output);
    }
    if (read_ <= written_) return;
    const std::string bytes = encode_frame(frame.time, frame.stream, frame.bytes, frame.rank);
    // The previous stream may have broken off within a frame: this one continues there.
    waiting_.append(bytes,
                    written_ + waiting_.size() > begin ? written_ + waiting_.size() - begin : 0);
    if (waiting_.size() >= kMaxFollowRecord) send(output);
  }

  void send(FollowOutput& output) {
    output.write_all(FollowKind::kLog, written_, waiting_);
    written_ += waiting_.size();
    waiting_.clear();
  }

  void write_start(FollowOutput& output) {
    auto text = base::read_file(folder_.log_start(), 256);
    if (!text || *text == start_) return;
    start_ = *std::move(text);
    output.write(FollowKind::kLogStart, 0, start_);
  }

  TaskFolder folder_;
  std::optional<FileLogCursor> cursor_;
  uint64_t read_ = 0;    ///< offset up to which the log was read
  uint64_t written_;     ///< offset up to which the log was written to the stream
  std::string waiting_;  ///< the bytes of the log from `written_` on, not written yet
  std::string start_;
};

/// Writes what the metrics have grown by: only whole lines, and the whole file after it was
/// rewritten.
class MetricRecords {
 public:
  MetricRecords(const TaskFolder& folder, uint64_t written)
      : file_(folder.metrics()), written_(written) {}

  void write(FollowOutput& output) {
    UniqueFd file(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status{};
    if (!file || ::fstat(file.get(), &status) != 0) return;
    if (!goes_on(file, status)) written_ = 0;
    inode_ = status.st_ino;
    read_ = std::move(file);
    std::string text(kMaxFollowRecord, '\0');
    while (output.is_read()) {
      const ssize_t count =
          ::pread(read_.get(), text.data(), text.size(), static_cast<off_t>(written_));
      const std::string_view read(text.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
      const size_t lines = read.rfind('\n') + 1;  // 0: no line is complete
      if (lines == 0) return;
      output.write(FollowKind::kMetrics, written_, read.substr(0, lines));
      written_ += lines;
    }
  }

 private:
  /// Whether the file is the one that was written up to `written_`. At the start of a stream the
  /// inode is unknown: then the file counts as rewritten if no line ends at that offset.
  bool goes_on(const UniqueFd& file, const struct stat& status) const {
    if (inode_ && *inode_ != status.st_ino) return false;
    if (written_ == 0) return true;
    char last = '\0';
    return ::pread(file.get(), &last, 1, static_cast<off_t>(written_ - 1)) == 1 && last == '\n';
  }

  std::filesystem::path file_;
  std::optional<ino_t> inode_;  ///< of `read_`
  UniqueFd read_;               ///< while it is open, no other file gets the number of its inode
  uint64_t written_;
};

class RankReporter {
 public:
  void write(const std::filesystem::path& folder, const FolderWatch::Changes& changes,
             FollowOutput& output) {
    if (changes.all) {
      for (const SignedRank& rank : ranks_in(folder)) write(rank, output);
      return;
    }
    for (const std::string& name : changes.names) {
      if (const auto rank = rank_in(folder, name)) write(*rank, output);
    }
  }

 private:
  /// A rank whose file is being written has no world size yet; it is reported later.
  void write(const SignedRank& rank, FollowOutput& output) {
    const auto found = written_.find(rank.rank);
    if (rank.world_size <= 0 || (found != written_.end() && found->second == rank.world_size))
      return;
    written_[rank.rank] = rank.world_size;
    output.write(FollowKind::kRank, 0,
                 std::to_string(rank.rank) + " " + std::to_string(rank.world_size));
  }

  std::map<int, int> written_;
};

class Follower {
 public:
  explicit Follower(const FollowPlan& plan)
      : folder_(plan.folder),
        output_(plan),
        log_(folder_, plan.log_offset),
        metrics_(folder_, plan.metrics_offset) {}

  int run() {
    if (!watch_.add(folder_.path)) {
      std::fprintf(stderr, "muster-shim: there is no folder '%s'\n", folder_.path.c_str());
      return 1;
    }
    while (output_.is_read()) {
      if (look()) return 0;
      // The task may have ended between look()'s take() of its folder and that of the ranks'
      // folder.
      if (!watch_.has_changes()) output_.wait_for(watch_.descriptor());
    }
    return 1;
  }

 private:
  /// Writes all news. True: the last record is written. Reads whether the task has ended before it
  /// reads the log and the metrics, so that it cannot miss their last bytes.
  bool look() {
    FolderWatch::Changes changes = watch_.take(folder_.path);
    const std::string refusal = state_of(changes, "refused", folder_.refused());
    const std::string end = end_of(changes);
    if (!end.empty() || !refusal.empty()) changes.all = true;
    write_states(changes);
    if (changes.has("log") || changes.has("log.start")) log_.write(output_);
    if (changes.has("metrics")) metrics_.write(output_);
    write_ranks(changes.all);
    if (!end.empty()) output_.write(FollowKind::kExit, 0, end);
    if (!refusal.empty()) output_.write(FollowKind::kRefused, 0, refusal);
    return output_.is_read() && !(end.empty() && refusal.empty());
  }

  static std::string state_of(const FolderWatch::Changes& changes, const char* name,
                              const std::filesystem::path& file) {
    if (!changes.has(name)) return "";
    auto text = base::read_file(file, kMaxFollowRecord);
    return text ? *std::move(text) : "";
  }

  std::string end_of(const FolderWatch::Changes& changes) const {
    std::string text = state_of(changes, "exit", folder_.exit());
    if (!decode_exit(text)) return "";
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }

  /// The shim writes "mpi" before "running". So "running" is read first here, and "mpi" is reported
  /// first.
  void write_states(const FolderWatch::Changes& changes) {
    const std::string running = running_ ? "" : state_of(changes, "running", folder_.running());
    if (!running.empty()) {
      running_ = true;
      if (const auto mpi = base::read_file(folder_.mpi(), kMaxFollowRecord)) {
        output_.write(FollowKind::kMpi, 0, *mpi);
      }
      output_.write(FollowKind::kRunning, 0, running);
    }
    if (running_ && !answered_ && ::access(folder_.answered().c_str(), F_OK) == 0) {
      answered_ = true;
      output_.write(FollowKind::kAnswered, 0, "");
    }
  }

  void write_ranks(bool all) {
    const auto folder = ranks_folder();
    if (!folder) return;
    FolderWatch::Changes changes = watch_.take(*folder);
    changes.all = changes.all || all;
    ranks_.write(*folder, changes, output_);
  }

  /// nullopt: the folder does not exist yet.
  std::optional<std::filesystem::path> ranks_folder() {
    if (!ranks_folder_) read_plan();
    if (!ranks_folder_ || ranks_folder_->empty()) return std::nullopt;
    watches_ranks_ = watches_ranks_ || watch_.add(*ranks_folder_);
    return watches_ranks_ ? ranks_folder_ : std::nullopt;
  }

  void read_plan() {
    const auto text = base::read_file(folder_.plan());
    const auto plan = text ? decode_shim_plan(*text) : base::Result<ShimPlan>(text.error());
    if (!plan) return;
    ranks_folder_.emplace();
    if (!plan->inner.takes_ranks) return;
    const std::filesystem::path generated(plan->generated);
    *ranks_folder_ = (generated.empty() ? folder_.generated() : generated) / "ranks";
  }

  TaskFolder folder_;
  FollowOutput output_;
  FolderWatch watch_;
  LogRecords log_;
  MetricRecords metrics_;
  RankReporter ranks_;
  std::optional<std::filesystem::path> ranks_folder_;  ///< empty: the task takes no ranks
  bool watches_ranks_ = false;
  bool running_ = false;
  bool answered_ = false;
};

/// Whether the descriptor is a pipe or a socket. Any other kind, such as /dev/null, is at its end
/// from the start.
bool is_pipe_or_socket(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

}  // namespace

int follow(const FollowPlan& plan) {
  return Follower(plan).run();
}

int run_follow(char** arguments, int count) {
  const auto log = base::number_of<uint64_t>(count == 3 ? arguments[1] : "");
  const auto metrics = base::number_of<uint64_t>(count == 3 ? arguments[2] : "");
  if (!log || !metrics) return 2;
  ::signal(SIGPIPE, SIG_IGN);
  return follow({.folder = {arguments[0]},
                 .log_offset = *log,
                 .metrics_offset = *metrics,
                 .hang_up = is_pipe_or_socket(STDIN_FILENO) ? STDIN_FILENO : -1});
}

}  // namespace muster::engine
