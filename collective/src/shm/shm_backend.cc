#include "shm/shm_backend.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <new>

namespace muster::collective::shm {
namespace {

// Two ranks meet in 60 to 80 ns on processors under one cache, in 250 ns or more on processors
// under two caches.
constexpr double kFarMeeting = 170e-9;
constexpr int kFirstProbe = 64;
constexpr int kProbe = 8;
constexpr std::uint64_t kProbeEvery = 64;  // large calls; probing takes less than 1 % of their time
constexpr std::uint64_t kLargeCall = 64 << 10;

// With more ranks than this on too few processors, a rank that waits sleeps.
constexpr int kMostWorthYielding = 16;

Board& own_board(const Host& host) {
  std::byte* const place =
      host.memory + host.layout.boards + static_cast<std::uint64_t>(host.self) * kBoardBytes;
  return *reinterpret_cast<Board*>(place);
}

std::array<std::uint64_t, 16> own_processors() {
  std::array<std::uint64_t, 16> mask = {};
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return mask;
  for (std::size_t cpu = 0; cpu < mask.size() * 64 && cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) mask[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
  }
  return mask;
}

bool is_same(const KernelSpec& a, const KernelSpec& b) {
  return a.type == b.type && a.op == b.op && a.prescale == b.prescale &&
         a.postscale == b.postscale && a.divisor == b.divisor;
}

}  // namespace

ShmBackend::ShmBackend(Host host)
    : host_(std::move(host)),
      waiter_(own_board(host_), host_.monitor,
              [this](const Board& theirs, const Call* call) { return has_left(theirs, call); }),
      rings_(host_.memory, host_.layout, host_.self, waiter_, host_.file, host_.monitor),
      inputs_(host_.ranks.size()),
      sent_(host_.ranks.size()),
      received_(host_.ranks.size()) {
  mine().processors = own_processors();
}

Result<std::unique_ptr<ShmBackend>> ShmBackend::create(Host host) {
  std::unique_ptr<ShmBackend> backend(new ShmBackend(std::move(host)));
  if (Status together = backend->come_together(); !together) return together.error();
  return backend;
}

// Until all ranks have arrived, the number of processors that they share is unknown, so all wait as
// if there were too few. Then some meetings measure the distance of the ranks.
Status ShmBackend::come_together() {
  waiter_.set_crowded(true, size() > kMostWorthYielding);
  const Call hello{.kind = CallKind::kBarrier};
  if (Status met = barrier(hello); !met) return met;
  std::array<std::uint64_t, 16> all = {};
  for (int rank = 0; rank < size(); ++rank) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] |= board(rank).processors[i];
  }
  processors_ = 0;
  for (const std::uint64_t word : all) processors_ += std::popcount(word);
  waiter_.set_crowded(size() > std::max(processors_, 1), size() > kMostWorthYielding);
  if (waiter_.crowded()) return barrier(hello);
  return outcome(measure_distance(kFirstProbe));
}

bool ShmBackend::measure_distance(int meetings) {
  double fastest = 1;
  for (int i = 0; i < meetings; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    enter({.kind = CallKind::kBarrier}, nullptr, 0);
    if (!meet_all()) return false;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fastest = std::min(fastest, took.count());
  }
  far_ = fastest > kFarMeeting;
  return true;
}

// If the ranks are near, a plain store leaves the cache line where the reader finds it. If they are
// far apart, a plain store first has to fetch the line back from the reader, at a few GB/s; a
// streaming store does not. The host of a virtual machine may move its processors at any time
// without notice, so the distance is measured again regularly.
Stores ShmBackend::stores_for(std::uint64_t bytes) const {
  return far_ && bytes >= kLargeCall && !waiter_.crowded() ? Stores::kStreaming : Stores::kCached;
}

// Called at the end of each staged call, when all ranks have entered it and seen that it was
// staged: so all ranks count alike, and measure after the same call. Before an all-reduce a rank
// whose buffers are not in the arena cannot see whether the others enter the call first.
bool ShmBackend::measure_again(std::uint64_t bytes) {
  if (bytes < kLargeCall || waiter_.crowded()) return true;
  return ++large_calls_ % kProbeEvery != 0 || measure_distance(kProbe);
}

// The entry of the call before the last call may be overwritten: all ranks have entered the last
// call, and no longer read the one before.
void ShmBackend::enter(const Call& call, const void* note, std::size_t bytes) {
  const std::uint64_t number = ++calls_;
  const std::size_t turn = number % 2;
  Board& board = mine();
  board.calls[turn] = call;
  waiter_.begin(board.calls[turn]);
  Entry& entry = board.entries[turn];
  if (bytes > 0) std::memcpy(entry.payload.data(), note, bytes);
  entry.signature.store(signature_of(call), std::memory_order_relaxed);
  waiter_.publish(entry.sequence, number);
}

bool ShmBackend::meet(int peer) {
  Board& theirs = board(peer);
  const std::size_t turn = calls_ % 2;
  const Entry& entry = theirs.entries[turn];
  if (!waiter_.reach(theirs, entry.sequence, calls_)) return false;
  const std::uint64_t own = mine().entries[turn].signature.load(std::memory_order_relaxed);
  return entry.signature.load(std::memory_order_relaxed) == own || differ(peer);
}

// The last rank first: ranks are often woken in their order, and then one wait suffices.
bool ShmBackend::meet_all() {
  for (int peer = size() - 1; peer >= 0; --peer) {
    if (peer != host_.self && !meet(peer)) return false;
  }
  return true;
}

bool ShmBackend::differ(int peer) {
  const auto asked = [this](int place) {
    const auto i = static_cast<std::size_t>(place);
    return Asked{host_.ranks[i], host_.names[i], board(place).calls[calls_ % 2]};
  };
  if (host_.monitor != nullptr) host_.monitor->fail(mismatch(asked(host_.self), asked(peer)));
  return false;
}

// For calls in which ranks write to each other's buffers: returns once all ranks are done.
bool ShmBackend::finish_together() {
  const std::uint64_t number = ++meetings_;
  waiter_.publish(mine().finished.value, number);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == host_.self) continue;
    Board& theirs = board(peer);
    if (!waiter_.reach(theirs, theirs.finished.value, number)) return false;
  }
  return true;
}

std::optional<Error> ShmBackend::has_left(const Board& theirs, const Call* call) const {
  const std::byte* const boards = host_.memory + host_.layout.boards;
  const auto offset =
      static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&theirs) - boards);
  const auto place = offset / kBoardBytes;
  const int rank = host_.ranks[place];
  if (host_.monitor == nullptr || !host_.monitor->has_sent_goodbye(rank)) return std::nullopt;
  const bool is_message = call != nullptr && call->kind == CallKind::kSend;
  return Error{ErrorCode::kPeerLost,
               name_of(static_cast<int>(place)) + " has left, but " + name_of(host_.self) +
                   " still waits for it in " + text_of(call),
               is_message ? "a rank must not leave before it has sent and received all messages"
                          : "every rank must make the same number of calls",
               rank, host_.names[place]};
}

Status ShmBackend::fail(Error error) {
  return host_.monitor != nullptr ? host_.monitor->fail(std::move(error)) : error;
}

std::string ShmBackend::name_of(int place) const {
  const auto i = static_cast<std::size_t>(place);
  return "rank " + std::to_string(host_.ranks[i]) + " on host " + host_.names[i];
}

Status ShmBackend::outcome(bool ok) const {
  if (ok) return {};
  if (host_.monitor != nullptr && host_.monitor->failed()) return host_.monitor->failure();
  return Error{ErrorCode::kMismatch, "the ranks of this host make different calls"};
}

Status ShmBackend::barrier(const Call& call) {
  enter(call, nullptr, 0);
  return outcome(meet_all());
}

const Kernel& ShmBackend::kernel_for(const Call& call) {
  const KernelSpec spec = spec_of(call.type, call.reduction, size());
  if (!kernel_ || !is_same(spec, kernel_spec_)) {
    kernel_spec_ = spec;
    kernel_ = Kernel::of(spec);
  }
  return *kernel_;
}

std::string ShmBackend::explain(DataType type, std::uint64_t bytes) const {
  const std::string host = std::to_string(size()) + " ranks on " + std::to_string(processors_) +
                           (processors_ == 1 ? " processor" : " processors");
  return "shared memory, " + describe(type, bytes) + "; " + host;
}

}  // namespace muster::collective::shm
