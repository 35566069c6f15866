#include "engine/slurm/node/record_follower.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "engine/shim/follow.h"

namespace muster::engine::slurm {

using base::Result;
using base::UniqueFd;

namespace {

struct Pipe {
  UniqueFd read_end, write_end;
};

Result<Pipe> make_record_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return base::system_error("cannot make a pipe", errno);
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Result<std::unique_ptr<RecordFollower>> RecordFollower::start(base::EventLoop& loop,
                                                              const TaskFolder& folder,
                                                              uint64_t log_offset,
                                                              uint64_t metrics_offset, Tell tell) {
  MUSTER_TRY(Pipe records, make_record_pipe());
  MUSTER_TRY(Pipe hang_up, make_record_pipe());
  std::unique_ptr<RecordFollower> follower(new RecordFollower(loop, std::move(tell)));
  follower->records_ = std::move(records.read_end);
  follower->hang_up_ = std::move(hang_up.write_end);
  follower->thread_ =
      std::thread([folder, log_offset, metrics_offset, output = std::move(records.write_end),
                   end = std::move(hang_up.read_end)] {
        follow({.folder = folder,
                .log_offset = log_offset,
                .metrics_offset = metrics_offset,
                .output = output.get(),
                .hang_up = end.get()});
      });
  follower->pause(true);
  follower->pause(false);
  return follower;
}

RecordFollower::~RecordFollower() {
  *alive_ = false;
  readable_.reset();
  hang_up_.reset();
  records_.reset();
  thread_.join();
}

void RecordFollower::pause(bool paused) {
  if (std::exchange(paused_, paused) == paused) return;
  readable_.reset();
  if (paused || !records_) return;
  readable_ = loop_.when_readable(records_.get(), [this] { read(); });
  loop_.post([this, alive = alive_] {
    if (*alive) tell_some();
  });
}

void RecordFollower::read() {
  std::array<char, kMaxFollowRecord> bytes;
  const ssize_t count = ::read(records_.get(), bytes.data(), bytes.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return readable_.reset();
  reader_.add({bytes.data(), static_cast<size_t>(count)});
  tell_some();
}

void RecordFollower::tell_some() {
  const auto alive = alive_;
  while (*alive && !paused_) {
    auto record = reader_.next();
    if (!record) return;
    const auto tell = tell_;
    tell(*std::move(record));
  }
}

}  // namespace muster::engine::slurm
