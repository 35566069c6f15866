// What ranks and their coordinator, rank 0, tell each other. The ranks hand over; the coordinator
// answers with records, which every rank gets in one order: the log.
//
// A name gets its number in the first record that speaks of it. From then on a rank that asks for
// the same again says the number alone, and where all ranks do, so does the record.
//
// Little-endian, texts and lists with their length before them (transport/bytes.h):
//
//   hand-over:  u8 1, text name, call header (call/call.h), u32 n, n x u64 lengths, text shape
//               u8 2, u32 id            the same again
//               u8 3                    join
//               u8 4                    leave
//   record:     u8 1, u32 n, n entries  carry these out, together
//               u8 2, u32 n, n x u32    forget these ids
//               u8 3, u32 rank          this rank has left; nothing follows
//               u8 4, u32 rank          all have joined, this rank last
//   entry:      u32 id, u16 last rank to hand over, u8 flags: 1 new, 2 failed
//               new: text name, call header, u32 n, n x u64 lengths, u32 m, m x u64 gathered
//               failed: an Error (transport/error_bytes.h)
//
// Pure. What is read from a peer is checked; a message that is not one decodes to nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "muster/collective/result.h"
#include "session/request.h"
#include "transport/bytes.h"

namespace muster::collective::session {

inline constexpr std::size_t kLongestName = 4096;

struct New {
  std::string name;
  Request request;
};
struct Again {
  std::uint32_t id;
};
struct Join {};
struct Leave {};
using HandOver = std::variant<New, Again, Join, Leave>;

Bytes encode_new(std::string_view name, const Request& request);
Bytes encode(Again again);
Bytes encode(Join);
Bytes encode(Leave);
std::optional<HandOver> decode_hand_over(ByteView message);

/// What the ranks have agreed on under a name.
struct Agreed {
  std::string name;
  Request request;  // of the lowest rank that handed it over
  std::vector<std::uint64_t>
      gathered;                     // all_gather: bytes by rank; all_to_all: by sender, receiver
  std::optional<Error> error = {};  // they have not: what is wrong
};

struct Entry {
  std::uint32_t id = 0;
  int last = 0;
  std::shared_ptr<const Agreed> news = {};  // null: as before

  // On rank 0 only.
  std::uint32_t tally = 0;  // tally_of() the name
  int hand_overs = 0;       // ranks that have handed it over
};

struct Batch {
  std::vector<Entry> entries;
};
struct Forget {
  std::vector<std::uint32_t> ids;
};
struct Left {
  int rank;
};
struct AllJoined {
  int last;
};
using Record = std::variant<Batch, Forget, Left, AllJoined>;

/// By which hand-overs of a name are counted (channel.h): the same on every rank, whatever it was
/// built with.
std::uint32_t tally_of(std::string_view name);

Bytes encode(const Record& record);

/// Reads into `batch` where it is one, whose memory is used again.
bool decode_batch(ByteView record, Batch& batch);
std::optional<Record> decode_record(ByteView record);
bool is_batch(ByteView record);

}  // namespace muster::collective::session
