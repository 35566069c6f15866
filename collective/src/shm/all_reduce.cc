// All-reduce among the ranks of a host, by size:
//
//   up to 496 bytes  in the entries of the call, which all ranks read anyway
//   direct           every rank reads all inputs and reduces all of them: one step. With two ranks,
//                    each has to read all of the other's input in any case.
//   in slices        reduce-scatter and all-gather: each rank reduces its slice of a chunk and
//                    publishes the result. A rank reads 2 (n - 1) / n of the buffer, not n - 1
//                    times the buffer.
//   in the arena     the same without chunks or copies: each rank reduces its slice of all ranks'
//                    buffers into all ranks' buffers (second half of this file)

#include <cstring>

#include "adasum/adasum.h"
#include "shm/shm_backend.h"
#include "shm/sliced_reduction.h"

namespace muster::collective::shm {
namespace {

// Up to this many bytes one step costs less than two. With two ranks a rank reads the same amount
// either way, but reduces less in slices; with more ranks it also reads less in slices.
constexpr std::uint64_t kDirectBytesOfTwo = 4 << 10;
constexpr std::uint64_t kDirectBytes = 2048;

// Room in the ring for three chunks in progress, their results, and the unused rest at the end of
// the ring.
constexpr std::uint64_t kSliceChunk = kRingBytes / 8;

// For fewer bytes a copy costs less than the second synchronization at the end.
constexpr std::uint64_t kArenaBytes = 32 << 10;

std::uint64_t elements_of(Pieces pieces) {
  std::uint64_t count = 0;
  for (const Piece& piece : pieces) count += piece.count;
  return count;
}

}  // namespace

Status ShmBackend::all_reduce(const Call& call, Pieces pieces) {
  if (call.reduction.op == ReduceOp::kAdasum) {
    if (Status met = barrier(call); !met) return met;
    in_adasum_ = true;
    Status reduced =
        adasum(adasum_links(*this, host_.self, size()), call.type, call.reduction, pieces);
    in_adasum_ = false;
    return reduced;
  }
  const Kernel& kernel = kernel_for(call);
  const std::uint64_t count = elements_of(pieces);
  const std::uint64_t bytes = count * kernel.bytes_in();
  if (bytes <= Entry::kInline) return outcome(reduce_inline(call, pieces, kernel, kEveryone));
  const EntryNote note = note_of(pieces, kernel.bytes_in());
  const bool waits_for_notes = bytes >= kArenaBytes && note.all_in_arena != 0;
  if (waits_for_notes) {
    enter(call, &note, sizeof note);
    if (!meet_all()) return outcome(false);
    if (arena_serves(bytes)) return outcome(reduce_in_arena(pieces, kernel, count));
  }
  const Stores stores = stores_for(bytes);
  return outcome(reduce_staged(waits_for_notes ? nullptr : &call, pieces, kernel, count, stores) &&
                 measure_again(bytes));
}

std::string ShmBackend::describe(DataType type, std::uint64_t bytes) const {
  const auto kibibytes = [](std::uint64_t number) { return std::to_string(number >> 10) + " KiB"; };
  if (bytes <= Entry::kInline) return "in the entries of the call, in one step";
  const std::string arena =
      bytes >= kArenaBytes ? " (or in place, if every rank's buffers are shared)" : "";
  const std::string stores = far_ ? ", streaming stores" : "";
  const std::string element = std::string(to_string(type));
  if (bytes <= (size() == 2 ? kDirectBytesOfTwo : kDirectBytes)) return "direct, in one step";
  return "in slices, " + element + " in chunks of " + kibibytes(kSliceChunk) + stores + arena;
}

Status ShmBackend::reduce(const Call& call, const std::byte* in, std::byte* out) {
  const Kernel& kernel = kernel_for(call);
  const int root = call.root;
  // The outputs of other ranks are not written, but a cursor points there.
  const Piece piece{in, root == host_.self ? out : const_cast<std::byte*>(in), call.count};
  const std::uint64_t bytes = call.count * kernel.bytes_in();
  if (bytes <= Entry::kInline) return outcome(reduce_inline(call, {&piece, 1}, kernel, root));
  return outcome(
      reduce_in_slices(&call, {&piece, 1}, kernel, call.count, stores_for(bytes), root) &&
      measure_again(bytes));
}

bool ShmBackend::reduce_staged(const Call* call, Pieces pieces, const Kernel& kernel,
                               std::uint64_t count, Stores stores) {
  const std::uint64_t bytes = count * kernel.bytes_in();
  if (bytes <= (size() == 2 ? kDirectBytesOfTwo : kDirectBytes)) {
    return reduce_directly(*call, pieces, kernel, count);
  }
  return reduce_in_slices(call, pieces, kernel, count, stores, kEveryone);
}

bool ShmBackend::reduce_inline(const Call& call, Pieces pieces, const Kernel& kernel, int only) {
  const std::size_t element = kernel.bytes_in();
  std::byte* to = next_entry().payload.data();
  for (const Piece& piece : pieces) {
    if (piece.count > 0) std::memcpy(to, piece.in, piece.count * element);
    to += piece.count * element;
  }
  enter(call, nullptr, 0);
  if (!meet_all()) return false;
  if (only != kEveryone && only != host_.self) return true;
  for (int rank = 0; rank < size(); ++rank) {
    inputs_[static_cast<std::size_t>(rank)] = board(rank).entries[calls_ % 2].payload.data();
  }
  for (const Piece& piece : pieces) {
    kernel(inputs_.data(), size(), piece.out, piece.count);
    for (const std::byte*& input : inputs_) input += piece.count * element;
  }
  return true;
}

// A rank that has met another rank can read its staged input.
bool ShmBackend::reduce_directly(const Call& call, Pieces pieces, const Kernel& kernel,
                                 std::uint64_t count) {
  const std::size_t element = kernel.bytes_in();
  const std::uint64_t cell = rings_.reserve(count * element);
  const std::uint64_t end = cell + count * element;
  if (!rings_.await_room(end)) return false;
  std::byte* to = rings_.at(host_.self, cell);
  for (const Piece& piece : pieces) {
    if (piece.count > 0) std::memcpy(to, piece.in, piece.count * element);
    to += piece.count * element;
  }
  enter(call, nullptr, 0);
  for (int rank = 0; rank < size(); ++rank) {
    if (rank != host_.self && !meet(rank)) return false;
    inputs_[static_cast<std::size_t>(rank)] = rings_.at(rank, cell);
  }
  for (const Piece& piece : pieces) {
    if (piece.count > 0) kernel(inputs_.data(), size(), piece.out, piece.count);
    for (const std::byte*& input : inputs_) input += piece.count * element;
  }
  rings_.consume(end);
  return true;
}

bool ShmBackend::reduce_in_slices(const Call* call, Pieces pieces, const Kernel& kernel,
                                  std::uint64_t count, Stores stores, int receiver) {
  const bool streams =
      count * kernel.bytes_in() >= kStreamBytes && !is_in_place(pieces) && !waiter_.crowded();
  const SlicedTask task{.pieces = pieces,
                        .kernel = kernel,
                        .slices = Slices::of_chunks(count, kSliceChunk / kernel.bytes_in(), size()),
                        .cell_stores = stores,
                        .out_stores = streams ? Stores::kStreaming : Stores::kCached,
                        .receiver = receiver};
  SlicedReduction reduction(task, rings_, waiter_, host_.self, size());
  const std::uint64_t rounds = task.slices.rounds();
  for (std::uint64_t round = 0; round < rounds + 2; ++round) {
    if (round < rounds && !reduction.stage(round)) return false;
    if (round == 0 && call != nullptr) {
      const EntryNote note = note_of({}, kernel.bytes_in());  // not in the arena
      enter(*call, &note, sizeof note);
      if (!meet_all()) return false;
    }
    if (round >= 1 && round - 1 < rounds && !reduction.reduce(round - 1)) return false;
    if (round >= 2 && !reduction.gather(round - 2)) return false;
  }
  return true;
}

// All-reduce of tensors in the memory that the ranks share: nothing is staged. Each rank reduces
// its slice of all ranks' buffers and writes the result to all of them: n reads and n writes of 1/n
// of the buffer, which is the minimum (docs/collective.md).
namespace {

// The limit if the outputs are not the inputs: for fewer bytes, fetching the cache lines of other
// ranks' outputs costs more than cells.
constexpr std::uint64_t kArenaBytesApart = 512 << 10;

struct Offsets {
  std::uint64_t in;
  std::uint64_t out;
};

}  // namespace

std::uint64_t ShmBackend::offset_in_arenas(const std::byte* data, std::uint64_t bytes) const {
  const std::byte* const begin = host_.memory + host_.layout.arenas;
  const std::byte* const end = host_.memory + host_.layout.total;
  if (data < begin || data + bytes > end) return EntryNote::kNotInArena;
  return static_cast<std::uint64_t>(data - host_.memory);
}

EntryNote ShmBackend::note_of(Pieces pieces, std::size_t element) const {
  EntryNote note;
  // The offsets of a list must fit in one cell.
  const bool fits = pieces.size() * sizeof(Offsets) <= kRingBytes / 2;
  note.all_in_arena = !pieces.empty() && fits ? 1 : 0;
  note.in_place = is_in_place(pieces) ? 1 : 0;
  for (const Piece& piece : pieces) {
    const std::uint64_t in = offset_in_arenas(piece.in, piece.count * element);
    const std::uint64_t out = offset_in_arenas(piece.out, piece.count * element);
    if (&piece == pieces.data()) note.in = in, note.out = out;
    if (in == EntryNote::kNotInArena || out == EntryNote::kNotInArena) note.all_in_arena = 0;
  }
  return note;
}

EntryNote ShmBackend::note_from(int peer) {
  EntryNote note;
  std::memcpy(&note, board(peer).entries[calls_ % 2].payload.data(), sizeof note);
  return note;
}

bool ShmBackend::arena_serves(std::uint64_t bytes) {
  bool in_place = true;
  for (int rank = 0; rank < size(); ++rank) {
    const EntryNote note = note_from(rank);
    if (note.all_in_arena == 0) return false;
    in_place = in_place && note.in_place != 0;
  }
  return in_place || bytes >= kArenaBytesApart;
}

// Converts the lists of all ranks to addresses of this process.
bool ShmBackend::lists_in_arena(Pieces pieces, std::vector<std::vector<Piece>>& lists) {
  const auto piece_at = [&](Offsets offsets, std::uint64_t count) {
    return Piece{host_.memory + offsets.in, host_.memory + offsets.out, count};
  };
  lists.assign(host_.ranks.size(), {});
  if (pieces.size() == 1) {
    for (int rank = 0; rank < size(); ++rank) {
      const EntryNote note = note_from(rank);
      lists[static_cast<std::size_t>(rank)].push_back(
          piece_at({note.in, note.out}, pieces[0].count));
    }
    return true;
  }
  const std::uint64_t bytes = pieces.size() * sizeof(Offsets);
  const std::uint64_t cell = rings_.reserve(bytes);
  if (!rings_.await_room(cell + bytes)) return false;
  auto* const table = reinterpret_cast<Offsets*>(rings_.at(host_.self, cell));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    table[i] = {offset_in_arenas(pieces[i].in, 0), offset_in_arenas(pieces[i].out, 0)};
  }
  waiter_.publish(mine().staged.value, cell + bytes);
  for (int rank = 0; rank < size(); ++rank) {
    Board& theirs = board(rank);
    if (rank != host_.self && !waiter_.reach(theirs, theirs.staged.value, cell + bytes)) {
      return false;
    }
    const auto* const offsets = reinterpret_cast<const Offsets*>(rings_.at(rank, cell));
    std::vector<Piece>& list = lists[static_cast<std::size_t>(rank)];
    list.reserve(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      list.push_back(piece_at(offsets[i], pieces[i].count));
    }
  }
  rings_.consume(cell + bytes);
  return true;
}

bool ShmBackend::reduce_in_arena(Pieces pieces, const Kernel& kernel, std::uint64_t count) {
  std::vector<std::vector<Piece>> lists;
  if (!lists_in_arena(pieces, lists)) return false;
  const std::size_t element = kernel.bytes_in();
  const auto n = static_cast<std::uint64_t>(size());
  const std::uint64_t each = ((count + n - 1) / n + 63) / 64 * 64;
  const std::uint64_t begin = std::min(count, each * static_cast<std::uint64_t>(host_.self));
  const std::uint64_t end = std::min(count, begin + each);
  const bool streams = count * element >= kStreamBytes && !is_in_place(pieces);
  std::vector<std::byte*> outs(host_.ranks.size());
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < pieces.size() && at < end; at += pieces[i].count, ++i) {
    const std::uint64_t from = std::max(begin, at);
    const std::uint64_t to = std::min(end, at + pieces[i].count);
    if (from >= to) continue;
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      inputs_[rank] = lists[rank][i].in + (from - at) * element;
      outs[rank] = lists[rank][i].out + (from - at) * element;
    }
    kernel.to_all(inputs_.data(), size(), outs.data(), size(), to - from,
                  streams ? Stores::kStreaming : Stores::kCached);
  }
  return finish_together();
}

}  // namespace muster::collective::shm
