#include "tcp/exchange.h"

#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "transport/socket.h"

namespace muster::collective::tcp {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Twice the time that a sleeping thread takes to wake up. A rank that takes longer is late for
// another reason.
constexpr microseconds kAwake{60};

// After this time the monitor probes the other ranks.
constexpr milliseconds kSlow{100};

// How much later than the end of a connection its reason may arrive.
constexpr milliseconds kVerdict{1'000};

// For fewer bytes it is not worth starting a kernel, unless they are the last bytes.
constexpr std::uint64_t kWorthMerging = 16 * 1024;

// With more connections than this, poll() for the ready connections is cheaper than trying each of
// them.
constexpr std::size_t kFew = 4;

// The total size of all windows. A window holds at least one chunk for each stream.
constexpr std::uint64_t kWindows = 4 * 1024 * 1024;
constexpr std::uint64_t kSmallestWindow = 32 * 1024;

constexpr std::uint64_t kLine = 64;

std::uint64_t whole_lines(std::uint64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

std::uint64_t window_of(const Dialogue& dialogue, std::size_t streams, std::size_t dialogues) {
  const std::uint64_t share = std::max(kSmallestWindow, whole_lines(kWindows / dialogues));
  const std::uint64_t chunk_bytes = kChunkBytes * std::max<std::uint64_t>(2, streams);
  return std::min({whole_lines(dialogue.staged_bytes), share, chunk_bytes});
}

}  // namespace

std::span<std::byte> Scratch::take(std::uint64_t bytes) {
  if (bytes > size_) {
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    size_ = bytes;
  }
  return {bytes_.get(), bytes};
}

Exchange::Exchange(const Mesh& mesh, const Greeting& greeting, const Program& program, Memory in,
                   Memory out, Scratch& scratch)
    : mesh_(mesh),
      greeting_(greeting),
      program_(program),
      scratch_(scratch),
      memories_{std::move(in), std::move(out), Memory{}},
      tracks_(static_cast<std::size_t>(program.tracks)) {}

// In a large world: opens the connections that this call is the first to use.
Status Exchange::connect_peers() {
  World& world = mesh_.world();
  if (world.switchboard == nullptr) return {};
  std::vector<int> missing;
  for (const Dialogue& dialogue : program_.dialogues) {
    if (!mesh_.streams_to(dialogue.peer).empty()) continue;
    missing.push_back(dialogue.peer);
    world.switchboard->request_streams(mesh_.world_rank_of(dialogue.peer));
  }
  const Deadline begin = Clock::now();
  for (;;) {
    // Cleared before the scan, so that a connection that arrives during the scan wakes the poll.
    world.switchboard->forget_arrivals();
    for (std::size_t i = 0; i < missing.size();) {
      const int rank = mesh_.world_rank_of(missing[i]);
      Streams& streams = world.streams[static_cast<std::size_t>(rank)];
      const Result<bool> whole = world.switchboard->take_streams(rank, streams);
      if (!whole) return lost(missing[i], "did not open (" + whole.error().message + ")");
      if (*whole) {
        missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (missing.empty()) break;
    if (mesh_.monitor().failed()) return mesh_.monitor().failure();
    if (Clock::now() - begin >= kSlow && !watch_) note_slowness();
    std::array<pollfd, 2> entries = {pollfd{world.switchboard->arrival_descriptor(), POLLIN, 0},
                                     pollfd{mesh_.monitor().failure_descriptor(), POLLIN, 0}};
    ::poll(entries.data(), entries.size(), watch_ ? 1'000 : static_cast<int>(kSlow.count()));
  }
  watch_.reset();
  return {};
}

void Exchange::open_lanes() {
  const std::size_t count = program_.dialogues.size();
  std::uint64_t bytes = whole_lines(program_.spare_bytes);
  for (const Dialogue& dialogue : program_.dialogues) {
    bytes += window_of(dialogue, mesh_.streams_to(dialogue.peer).size(), count);
  }
  std::span<std::byte> room = scratch_.take(bytes);
  memories_[static_cast<std::size_t>(Space::kSpare)] = Memory(room.data(), program_.spare_bytes);
  room = room.subspan(whole_lines(program_.spare_bytes));

  const CallHeader header = encode(greeting_.call);
  lanes_.reserve(count);
  for (const Dialogue& dialogue : program_.dialogues) {
    const std::span<const Descriptor> streams = mesh_.streams_to(dialogue.peer);
    const std::uint64_t window = window_of(dialogue, streams.size(), count);
    const CallHeader own = greeting_.to ? encode(greeting_.to(dialogue.peer)) : header;
    lanes_.push_back({dialogue, Sender(dialogue, own, streams.size()),
                      Receiver(dialogue, room.first(window), streams.size()), !dialogue.receives});
    room = room.subspan(window);
    for (std::size_t stream = 0; stream < streams.size(); ++stream) {
      const bool is_used = stream * kChunkBytes <
                           std::max({dialogue.out_bytes, dialogue.in_bytes, std::uint64_t{1}});
      if (is_used) ports_.push_back({lanes_.size() - 1, stream, streams[stream].get()});
    }
  }
}

Status Exchange::run() {
  if (mesh_.monitor().failed()) return mesh_.monitor().failure();
  if (Status connected = connect_peers(); !connected) return connected;
  open_lanes();
  for (;;) {
    const Result<bool> moved = step();
    if (!moved) return moved.error();
    if (done()) return {};
    if (*moved) {
      quiet_since_.reset();
      watch_.reset();
      if (ports_.size() > kFew) look(0);
    } else if (Status waited = wait(); !waited) {
      return waited;
    }
  }
}

bool Exchange::done() const {
  const bool all_moved = std::ranges::all_of(lanes_, [](const Lane& lane) {
    return lane.sender.done() && lane.receiver.done() && lane.is_checked;
  });
  return all_moved && merged_ == program_.merges.size();
}

// One round over all connections. Received bytes are reduced before the next connection is read, so
// that they are still in the cache, and may be sent on at once.
Result<bool> Exchange::step() {
  bool moved = false;
  for (Port& port : ports_) {
    const Result<bool> sent = send(port);
    if (!sent) return sent;
    moved |= *sent;
  }
  for (Port& port : ports_) {
    const Result<bool> received = receive(port);
    if (!received) return received;
    if (*received) merge_all();
    moved |= *received;
  }
  // A merge may have waited only for bytes that are sent now.
  moved |= merge_all();
  if (moved && ports_.size() <= kFew) {
    for (Port& port : ports_) port.is_full = port.is_empty = false;
  }
  return moved;
}

Result<bool> Exchange::send(Port& port) {
  Lane& lane = lanes_[port.lane];
  if (port.is_full || lane.sender.done()) return false;
  Batch batch = lane.sender.ready(port.stream, memories_, tracks_);
  if (batch.count() == 0) return false;
  msghdr message = {};
  message.msg_iov = batch.vectors();
  message.msg_iovlen = batch.count();
  const ssize_t sent = ::sendmsg(port.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
      return lost(lane.dialogue.peer, "ended (" + reason_of_end(errno) + ")");
    port.is_full = errno != EINTR;
    return false;
  }
  lane.sender.sent(port.stream, static_cast<std::uint64_t>(sent));
  port.is_full = static_cast<std::uint64_t>(sent) < batch.bytes();
  return true;
}

Result<bool> Exchange::receive(Port& port) {
  Lane& lane = lanes_[port.lane];
  if (port.is_empty || lane.receiver.done()) return false;
  Batch batch = lane.receiver.room(port.stream, memories_);
  if (batch.count() == 0) return false;
  msghdr message = {};
  message.msg_iov = batch.vectors();
  message.msg_iovlen = batch.count();
  const ssize_t received = ::recvmsg(port.fd, &message, MSG_DONTWAIT);
  if (received == 0) return lost(lane.dialogue.peer, "ended (" + reason_of_end(0) + ")");
  if (received < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
      return lost(lane.dialogue.peer, "ended (" + reason_of_end(errno) + ")");
    port.is_empty = errno != EINTR;
    return false;
  }
  lane.receiver.received(port.stream, static_cast<std::uint64_t>(received), tracks_);
  port.is_empty = static_cast<std::uint64_t>(received) < batch.bytes();
  if (Status checked = check_header(lane); !checked) return checked.error();
  return true;
}

Status Exchange::check_header(Lane& lane) {
  if (lane.is_checked || lane.receiver.header() == nullptr) return {};
  const Call mine = greeting_.from ? greeting_.from(lane.dialogue.peer) : greeting_.call;
  if (*lane.receiver.header() != encode(mine)) return differs(lane, mine, *lane.receiver.header());
  lane.is_checked = true;
  return {};
}

bool Exchange::merge_all() {
  bool moved = false;
  for (std::size_t i = merged_; i < program_.merges.size(); ++i) {
    const Merge& merge = program_.merges[i];
    std::uint64_t& track = tracks_[static_cast<std::size_t>(merge.track)];
    const std::uint64_t ready = ready_for(merge);
    const bool is_end = ready == merge.out.bytes;
    if (ready > track && (is_end || ready - track >= kWorthMerging)) {
      run_merge(merge, track, ready);
      track = ready;
      moved = true;
    }
    if (i == merged_ && track == merge.out.bytes) ++merged_;
  }
  return moved;
}

// The number of bytes of the output whose inputs have arrived and whose memory may be overwritten.
std::uint64_t Exchange::ready_for(const Merge& merge) const {
  std::uint64_t ready = merge.out.bytes;
  const auto bound = [&ready](std::uint64_t there, std::uint64_t begin) {
    ready = std::min(ready, there > begin ? there - begin : 0);
  };
  for (const Source& source : merge.sources) {
    if (source.staged()) {
      const Lane& lane = lanes_[static_cast<std::size_t>(source.dialogue)];
      bound(lane.is_checked ? lane.receiver.prefix() : 0, source.begin);
    } else if (source.after.track != kReady) {
      bound(tracks_[static_cast<std::size_t>(source.after.track)], source.after.offset);
    }
  }
  for (const Unsent& part : merge.overwrites) {
    bound(lanes_[static_cast<std::size_t>(part.dialogue)].sender.prefix(), part.begin);
  }
  // Sockets may split an element: its beginning waits for its end.
  return ready - ready % merge.kernel->bytes_in();
}

void Exchange::run_merge(const Merge& merge, std::uint64_t begin, std::uint64_t end) {
  const Kernel& kernel = *merge.kernel;
  std::vector<const std::byte*> inputs(merge.sources.size());
  for (std::uint64_t at = begin; at < end;) {
    const Memory& out_memory = memories_[static_cast<std::size_t>(merge.out.space)];
    const Segment out = out_memory.at(merge.out.offset + at);
    std::uint64_t bytes = std::min(end - at, out.bytes);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Source& source = merge.sources[i];
      const Segment in =
          source.staged()
              ? lanes_[static_cast<std::size_t>(source.dialogue)].receiver.staged(source.begin + at)
              : memories_[static_cast<std::size_t>(source.range.space)].at(source.range.offset +
                                                                           at);
      inputs[i] = in.data;
      bytes = std::min(bytes, in.bytes);
    }
    kernel(inputs.data(), static_cast<int>(inputs.size()), out.data, bytes / kernel.bytes_in());
    at += bytes;
  }
  for (const Source& source : merge.sources) {
    if (!source.staged()) continue;
    lanes_[static_cast<std::size_t>(source.dialogue)].receiver.consumed(source.begin + end);
  }
}

Status Exchange::wait() {
  if (mesh_.monitor().failed()) return mesh_.monitor().failure();
  const Deadline now = Clock::now();
  if (!quiet_since_) quiet_since_ = now;
  const auto quiet = now - *quiet_since_;
  if (mesh_.may_spin() && quiet < kAwake) {
    ::sched_yield();
    if (ports_.size() > kFew) {
      look(0);
    } else {
      for (Port& port : ports_) port.is_full = port.is_empty = false;
    }
    return {};
  }
  if (quiet >= kSlow && !watch_) note_slowness();
  look(watch_ ? 1'000 : static_cast<int>(kSlow.count()));
  return {};
}

// Polls the connections. Waits until one is ready, or the world has failed.
void Exchange::look(int timeout_ms) {
  entries_.assign(1, {mesh_.monitor().failure_descriptor(), POLLIN, 0});
  for (const Port& port : ports_) {
    Lane& lane = lanes_[port.lane];
    const bool has_to_send =
        !lane.sender.done() && lane.sender.ready(port.stream, memories_, tracks_).count() > 0;
    const bool has_room =
        !lane.receiver.done() && lane.receiver.room(port.stream, memories_).count() > 0;
    const int events = (has_to_send ? POLLOUT : 0) | (has_room ? POLLIN : 0);
    entries_.push_back({events != 0 ? port.fd : -1, static_cast<short>(events), 0});
  }
  if (::poll(entries_.data(), entries_.size(), timeout_ms) < 0) return;
  constexpr int kEnd = POLLERR | POLLHUP | POLLNVAL;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const int found = entries_[i + 1].revents;
    if ((found & (POLLOUT | kEnd)) != 0) ports_[i].is_full = false;
    if ((found & (POLLIN | kEnd)) != 0) ports_[i].is_empty = false;
  }
}

void Exchange::note_slowness() {
  watch_.emplace(mesh_.monitor(), to_string(greeting_.call));
  if (greeting_.when_slow) greeting_.when_slow();
}

Error Exchange::lost(int peer, const std::string& event) {
  Monitor& monitor = mesh_.monitor();
  const Deadline deadline = Clock::now() + kVerdict;
  pollfd entry = {monitor.failure_descriptor(), POLLIN, 0};
  while (!monitor.failed() && Clock::now() < deadline) {
    ::poll(&entry, 1, milliseconds_left(deadline));
  }
  const int rank = mesh_.world_rank_of(peer);
  const bool has_left = std::ranges::count(monitor.departed(), rank) > 0;
  const std::string what = has_left ? " has left the world: " : " is gone: ";
  return monitor.fail({ErrorCode::kPeerLost,
                       mesh_.name_of(peer) + what + "its data connection to rank " +
                           std::to_string(mesh_.world().rank) + " " + event + " in " +
                           to_string(greeting_.call),
                       "see the last output of that rank", rank, mesh_.host_of(peer)});
}

Error Exchange::differs(const Lane& lane, const Call& mine, const CallHeader& theirs) {
  const int peer = lane.dialogue.peer;
  const World& world = mesh_.world();
  const auto rank = static_cast<std::size_t>(world.rank);
  return mesh_.monitor().fail(
      mismatch({world.rank, world.hosts[rank], mine},
               {mesh_.world_rank_of(peer), mesh_.host_of(peer), decode(theirs)}));
}

}  // namespace muster::collective::tcp
