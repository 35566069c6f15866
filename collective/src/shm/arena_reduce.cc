// All-reduce of tensors that live in the memory which the ranks share: nothing is staged. Each rank
// reduces its slice of everybody's buffers and writes the result into everybody's: n reads and n
// writes of 1/n of the buffer, the least there is (docs/collective.md).
#include <cstring>

#include "shm/shm_backend.h"

namespace muster::collective::shm {
namespace {

// With outputs of their own: below, fetching the lines of the others' outputs costs more than
// cells.
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
  // The offsets of a list have to fit in one cell.
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

// What the lists of all ranks are, as places in this one's address space.
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
