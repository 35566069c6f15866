// For tests: a task in a folder of this machine, held by the real muster-shim in the mode of
// process 1 of a container, and the stream of its records.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_folder.h"
#include "engine/log_frame.h"
#include "engine/shim/channels.h"
#include "engine/shim/follow.h"
#include "engine/shim/plan.h"

namespace muster::engine {

inline constexpr int kBoundMs = 60'000;

/// Whether the descriptor becomes readable within kBoundMs.
inline bool is_readable(const base::UniqueFd& fd) {
  pollfd watched{fd.get(), POLLIN, 0};
  return ::poll(&watched, 1, kBoundMs) > 0;
}

/// Reads the records of a stream.
class FollowStream {
 public:
  explicit FollowStream(base::UniqueFd stream) : stream_(std::move(stream)) {}

  /// The next record; nullopt: the stream has ended, or no record arrives in time.
  std::optional<FollowRecord> next() {
    std::array<char, 64 << 10> buffer;
    while (true) {
      if (auto record = reader_.next()) return record;
      EXPECT_FALSE(reader_.is_broken());
      if (!is_readable(stream_)) return std::nullopt;
      const ssize_t count = ::read(stream_.get(), buffer.data(), buffer.size());
      if (count <= 0) return std::nullopt;
      reader_.add({buffer.data(), static_cast<size_t>(count)});
    }
  }

  /// The records up to and including the first of `kind`.
  std::vector<FollowRecord> until(FollowKind kind) {
    std::vector<FollowRecord> records;
    while (auto record = next()) {
      records.push_back(*std::move(record));
      if (records.back().kind == kind) return records;
    }
    ADD_FAILURE() << "the stream ended before a record of kind " << static_cast<char>(kind);
    return records;
  }

  /// The records up to the end of the stream.
  std::vector<FollowRecord> rest() {
    std::vector<FollowRecord> records;
    while (auto record = next()) records.push_back(*std::move(record));
    return records;
  }

 private:
  base::UniqueFd stream_;
  FollowReader reader_;
};

/// The kinds of the records as a text, such as "rle"; consecutive equal kinds count once.
inline std::string kinds_of(const std::vector<FollowRecord>& records) {
  std::string kinds;
  for (const FollowRecord& record : records) {
    const char kind = static_cast<char>(record.kind);
    if (kinds.empty() || kinds.back() != kind) kinds += kind;
  }
  return kinds;
}

/// The bytes of all records of a kind.
inline std::string bytes_of(const std::vector<FollowRecord>& records, FollowKind kind) {
  std::string bytes;
  for (const FollowRecord& record : records) {
    if (record.kind == kind) bytes += record.bytes;
  }
  return bytes;
}

/// The output of the program in the bytes of a log.
inline std::string output_in(const std::string& log,
                             job::LogStream stream = job::LogStream::kOutput) {
  const base::TestFolder folder;
  EXPECT_TRUE(base::write_new_file(folder / "log", log));
  FileLogCursor cursor(base::UniqueFd(::open((folder / "log").c_str(), O_RDONLY | O_CLOEXEC)));
  std::string text;
  LogFrame frame;
  for (auto more = cursor.next(frame); more && *more; more = cursor.next(frame)) {
    if (frame.stream == stream) text += frame.bytes;
  }
  return text;
}

class ShimInContainer : public testing::Test {
 protected:
  ShimInContainer() {
    EXPECT_TRUE(base::make_private_folder(folder_ / "task"));
    EXPECT_TRUE(base::make_private_folder(folder_ / "generated" / "ranks"));
  }

  ~ShimInContainer() override {
    for (const base::Child& child : children_) {
      [[maybe_unused]] const auto sent = base::send_signal(child.pidfd, SIGKILL);
      [[maybe_unused]] const auto ended = base::wait_for(child);
    }
  }

  TaskFolder task() const { return {folder_ / "task"}; }
  std::filesystem::path generated() const { return folder_ / "generated"; }

  ShimPlan script(const std::string& text) const {
    return {.wrapper = {MUSTER_SHIM, "--inner"},
            .inner = {.argv = {"sh", "-c", text},
                      .environment = {"PATH=/usr/bin:/bin", "WHO=task",
                                      "SCRATCH=" + folder_.path().string()},
                      .folder = folder_.path().string(),
                      .generated = generated().string()},
            .generated = generated().string(),
            .grace = std::chrono::seconds(30)};
  }

  /// Starts the shim and returns its stream. `around`: a command that runs the shim's command.
  FollowStream start(const ShimPlan& plan, std::vector<std::string> around = {},
                     const std::string& shim = MUSTER_SHIM) {
    EXPECT_TRUE(base::write_new_file(task().plan(), encode(plan)));
    EXPECT_TRUE(base::write_new_file(task().complete(), ""));
    around.insert(around.end(), {shim, "--container", task().path.string()});
    return spawn(around);
  }

  FollowStream follow(uint64_t log_offset = 0, uint64_t metrics_offset = 0) {
    return spawn({MUSTER_SHIM, "--follow", task().path.string(), std::to_string(log_offset),
                  std::to_string(metrics_offset)});
  }

  /// Starts a program, which becomes the last of children(). Returns its standard output.
  FollowStream spawn(const std::vector<std::string>& argv) {
    auto output = make_output_pipe();
    EXPECT_TRUE(output);
    auto child = base::spawn({.argv = argv,
                              .environment = base::current_environment(),
                              .descriptors = {{output->there.get(), 1}, {2, 2}},
                              .new_session = true});
    EXPECT_TRUE(child) << child.error().what;
    children_.push_back(*std::move(child));
    return FollowStream(std::move(output->here));
  }

  const base::Child& child(size_t number = 0) const { return children_.at(number); }

  /// Sends a signal to the first child.
  void signal(int number) { EXPECT_TRUE(base::send_signal(child().pidfd, number)); }

  /// Waits for the end of a child and returns its exit code.
  int await_end(size_t number = 0) {
    if (!is_readable(children_.at(number).pidfd)) {
      ADD_FAILURE() << "the shim goes on";
      EXPECT_TRUE(base::send_signal(children_.at(number).pidfd, SIGKILL));
    }
    const auto status = base::wait_for(children_.at(number));
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(number));
    return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  }

  base::TestFolder folder_;

 private:
  std::vector<base::Child> children_;
};

}  // namespace muster::engine
