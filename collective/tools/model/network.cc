#include "network.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <queue>
#include <utility>
#include <vector>

namespace muster::collective::model {
namespace {

using tcp::Dialogue;
using tcp::Incoming;
using tcp::kReady;
using tcp::Merge;
using tcp::Outgoing;
using tcp::Program;
using tcp::Source;
using tcp::Track;

// The smallest cell: the library reduces no fewer bytes at once, except for the last (kWorthMerging
// in exchange.cc).
constexpr std::uint64_t kSmallestCell = 16 * 1024;

// Larger cells are used where there would be more than this many.
constexpr std::uint64_t kMostCells = 1 << 15;

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

// Which ranks are executed: 0 to `count` - 1; and which of them stands for another one.
struct Executed {
  int ranks;
  int count;
  Symmetry symmetry;

  int stand_in(int rank) const { return rank % count; }

  // The rank that is to stand_in(to) what `from` is to `to`.
  int partner(int from, int to) const {
    if (symmetry == Symmetry::kNone) return from;
    if (symmetry == Symmetry::kFlip) return from ^ to ^ stand_in(to);
    return (from - to + stand_in(to) + ranks) % ranks;
  }
};

Executed executed_ranks(const Network& network, int ranks, Symmetry symmetry) {
  const int count = network.ranks_per_host * std::max(1, network.hosts_per_switch);
  const bool are_powers = std::has_single_bit(static_cast<unsigned>(ranks)) &&
                          std::has_single_bit(static_cast<unsigned>(count));
  const bool fits = ranks % count == 0 && (symmetry != Symmetry::kFlip || are_powers);
  if (symmetry == Symmetry::kNone || !fits) return {ranks, ranks, Symmetry::kNone};
  return {ranks, count, symmetry};
}

// Something that serves one cell at a time.
struct Station {
  double byte = 0;
  double credit = 0;  // the time that a pause may save up
  double free_at = 0;

  // Serves bytes that can be sent from `time` on. Returns when it begins.
  double serve(double time, std::uint64_t bytes) {
    const double start = std::max(time - credit, free_at);
    free_at = start + static_cast<double>(bytes) * byte;
    return std::max(start, time);
  }
};

// One direction between two ranks: the message of a dialogue.
struct Connection {
  int from = 0;
  int to = 0;                  // the stand-in of the receiver
  int dialogue = 0;            // of `to`
  std::vector<int> path = {};  // stations; the first is the sender's port
  double latency = 0;
  std::size_t part = 0;       // the first part whose bytes may not all be sent yet
  std::uint64_t allowed = 0;  // bytes that may be sent
  std::uint64_t claimed = 0;  // bytes in cells
  bool is_waiting = false;    // a cell waits for the port
  std::size_t landing = 0;    // receiver: the first part that is not complete
  std::uint64_t received = 0;
};

// A staged part of a message, and the merge that reads it.
struct Reader {
  std::uint64_t begin;
  int merge;
};

struct MergeState {
  std::uint64_t started = 0;
  bool is_running = false;
  std::size_t slowest = 0;  // the source that had the fewest bytes when the merge last waited
};

struct Rank {
  Program program = {};
  std::vector<int> connection_of = {};  // by dialogue
  std::vector<int> incoming = {};       // by dialogue: the connection that delivers its message
  std::vector<std::vector<Reader>> readers = {};
  std::vector<std::size_t> reading = {};  // by dialogue: the first reader that is not complete
  std::vector<std::uint64_t> tracks = {};
  std::vector<std::vector<int>> senders = {};  // by track: dialogues that wait for it
  std::vector<std::vector<int>> mergers = {};  // by track
  std::vector<MergeState> merges = {};
  double processor_free_at = 0;
};

enum class Happening : std::uint8_t { kPrepared, kPortTaken, kArrived, kReceived, kMerged };

struct Event {
  double time;
  double first_byte;    // of kArrived: when the cell began to arrive
  std::uint64_t order;  // events of one time happen in the order in which they were scheduled
  std::uint64_t bytes;
  int subject;  // a connection; of kMerged, a rank
  int detail;   // of kArrived, the station on the path; of kMerged, the merge
  Happening happening;

  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : order > other.order;
  }
};

class Execution {
 public:
  Execution(const Network& network, Executed executed, const std::function<Program(int)>& program,
            std::uint64_t cell)
      : network_(network), executed_(executed), ranks_(index(executed.count)), cell_(cell) {
    for (int rank = 0; rank < executed_.count; ++rank) ranks_[index(rank)].program = program(rank);
    make_stations();
    for (int rank = 0; rank < executed_.count; ++rank) connect(rank);
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      const Connection& made = connections_[i];
      if (made.dialogue < 0) continue;
      ranks_[index(made.to)].incoming[index(made.dialogue)] = static_cast<int>(i);
    }
    for (Rank& rank : ranks_) find_dependents(rank);
    choose_cell();
  }

  Outcome run() {
    for (int rank = 0; rank < executed_.count; ++rank) {
      Rank& self = ranks_[index(rank)];
      for (const int connection : self.connection_of) refresh(connection);
      for (std::size_t i = 0; i < self.merges.size(); ++i) merge(rank, static_cast<int>(i));
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      handle(event);
    }
    outcome_.complete = is_complete();
    return outcome_;
  }

 private:
  // The stations: for each host its port out and in, for each switch up and down, and for each rank
  // the memory through which it sends to its neighbours.
  int port_out(int rank) const { return 2 * (rank / network_.ranks_per_host); }
  int port_in(int rank) const { return port_out(rank) + 1; }
  int switch_of(int rank) const {
    const int hosts = network_.hosts_per_switch;
    return hosts == 0 ? 0 : rank / network_.ranks_per_host / hosts;
  }
  int uplink(int rank) const { return uplinks_ + 2 * switch_of(rank); }
  int downlink(int rank) const { return uplink(rank) + 1; }
  int memory(int rank) const { return memories_ + rank; }

  void make_stations() {
    const int last = executed_.count - 1;
    uplinks_ = port_in(last) + 1;
    memories_ = uplinks_ + 2 * (switch_of(last) + 1);
    stations_.resize(index(memories_ + executed_.count));
    const double credit = network_.burst * network_.byte;
    for (int i = 0; i < uplinks_; ++i) stations_[index(i)] = {network_.byte, credit};
    for (int i = uplinks_; i < memories_; ++i) stations_[index(i)].byte = network_.uplink_byte;
    for (int i = 0; i < executed_.count; ++i) {
      stations_[index(memory(i))].byte = network_.local_byte;
    }
  }

  void connect(int rank) {
    Rank& self = ranks_[index(rank)];
    self.incoming.resize(self.program.dialogues.size(), -1);
    for (const Dialogue& dialogue : self.program.dialogues) {
      Connection made = {.from = rank, .to = executed_.stand_in(dialogue.peer)};
      const int partner = executed_.partner(rank, dialogue.peer);
      made.dialogue = dialogue_with(ranks_[index(made.to)].program, partner);
      lay_path(made, rank, dialogue.peer);
      self.connection_of.push_back(static_cast<int>(connections_.size()));
      connections_.push_back(std::move(made));
    }
  }

  static int dialogue_with(const Program& program, int peer) {
    const auto found = std::ranges::find(program.dialogues, peer, &Dialogue::peer);
    return found == program.dialogues.end() ? -1
                                            : static_cast<int>(found - program.dialogues.begin());
  }

  void lay_path(Connection& connection, int rank, int peer) const {
    if (rank / network_.ranks_per_host == peer / network_.ranks_per_host) {
      connection.path = {memory(rank)};
      connection.latency = network_.local_latency;
      return;
    }
    connection.path = {port_out(rank)};
    connection.latency = network_.latency;
    if (switch_of(rank) != switch_of(peer)) {
      connection.latency += 2 * network_.hop;
      if (network_.uplink_byte > 0) {
        connection.path.insert(connection.path.end(), {uplink(rank), downlink(connection.to)});
      }
    }
    connection.path.push_back(port_in(connection.to));
  }

  static void find_dependents(Rank& rank) {
    const Program& program = rank.program;
    rank.tracks.resize(index(program.tracks));
    rank.senders.resize(index(program.tracks));
    rank.mergers.resize(index(program.tracks));
    rank.readers.resize(program.dialogues.size());
    rank.reading.resize(program.dialogues.size());
    rank.merges.resize(program.merges.size());
    for (std::size_t i = 0; i < program.dialogues.size(); ++i) {
      for (const Outgoing& part : program.dialogues[i].out) {
        if (part.after.track == kReady) continue;
        rank.senders[index(part.after.track)].push_back(static_cast<int>(i));
      }
    }
    for (std::size_t i = 0; i < program.merges.size(); ++i) {
      const int merge = static_cast<int>(i);
      for (const Source& source : program.merges[i].sources) {
        if (source.staged()) {
          rank.readers[index(source.dialogue)].push_back({source.begin, merge});
        } else if (source.after.track != kReady) {
          rank.mergers[index(source.after.track)].push_back(merge);
        }
      }
    }
    for (auto& readers : rank.readers) std::ranges::sort(readers, {}, &Reader::begin);
  }

  void choose_cell() {
    std::uint64_t bytes = 0;
    for (const Rank& rank : ranks_) {
      for (const Dialogue& dialogue : rank.program.dialogues) bytes += dialogue.out_bytes;
    }
    cell_ = std::max(kSmallestCell, std::min(cell_, bytes / kMostCells));
  }

  void schedule(double time, Happening happening, int subject, std::uint64_t bytes, int detail = 0,
                double first_byte = 0) {
    events_.push({time, first_byte, scheduled_++, bytes, subject, detail, happening});
  }

  // Work of a rank's processor, which does one thing at a time. Returns when it is done.
  double work(int rank, double time) {
    double& free_at = ranks_[index(rank)].processor_free_at;
    free_at = std::max(free_at, now_) + time;
    return free_at;
  }

  // Counts the bytes that a connection may send now.
  void refresh(int which) {
    Connection& connection = connections_[index(which)];
    const Dialogue& dialogue = dialogue_of(which);
    while (connection.part < dialogue.out.size()) {
      const Outgoing& part = dialogue.out[connection.part];
      const std::uint64_t ready = ready_of(connection.from, part.after, part.range.bytes);
      connection.allowed = part.begin + ready;
      if (ready < part.range.bytes) break;
      ++connection.part;
    }
    send(which, network_.message);
  }

  const Dialogue& dialogue_of(int which) const {
    const Connection& connection = connections_[index(which)];
    const Rank& rank = ranks_[index(connection.from)];
    return rank.program.dialogues[index(which - rank.connection_of.front())];
  }

  std::uint64_t ready_of(int rank, tcp::After after, std::uint64_t bytes) const {
    if (after.track == kReady) return bytes;
    const std::uint64_t there = ranks_[index(rank)].tracks[index(after.track)];
    return there > after.offset ? std::min(bytes, there - after.offset) : 0;
  }

  // Prepares the next cell of a connection, if it has bytes and no cell waits.
  void send(int which, double start) {
    Connection& connection = connections_[index(which)];
    const std::uint64_t bytes = std::min(cell_, connection.allowed - connection.claimed);
    if (connection.is_waiting || bytes == 0) return;
    connection.is_waiting = true;
    connection.claimed += bytes;
    const double time = start + static_cast<double>(bytes) * network_.touched_byte;
    schedule(work(connection.from, time), Happening::kPrepared, which, bytes);
  }

  void handle(const Event& event) {
    switch (event.happening) {
      case Happening::kPrepared:
        return take_port(event);
      case Happening::kPortTaken:
        connections_[index(event.subject)].is_waiting = false;
        return send(event.subject, 0);
      case Happening::kArrived:
        return arrive(event);
      case Happening::kReceived:
        return receive(event);
      case Happening::kMerged:
        return end_merge(event);
    }
  }

  void take_port(const Event& event) {
    const Connection& connection = connections_[index(event.subject)];
    Station& port = stations_[index(connection.path.front())];
    const double start = port.serve(now_, event.bytes);
    const double end = std::max(now_, port.free_at);
    if (connection.path.size() > 1) outcome_.network_bytes += event.bytes;
    schedule(start, Happening::kPortTaken, event.subject, event.bytes);
    schedule(end + connection.latency, Happening::kArrived, event.subject, event.bytes, 1,
             start + connection.latency);
  }

  // The last byte of a cell could be at this station now.
  void arrive(const Event& event) {
    const Connection& connection = connections_[index(event.subject)];
    if (index(event.detail) == connection.path.size()) {
      const double time = static_cast<double>(event.bytes) * network_.touched_byte;
      return schedule(work(connection.to, time), Happening::kReceived, event.subject, event.bytes);
    }
    Station& station = stations_[index(connection.path[index(event.detail)])];
    const double start = station.serve(event.first_byte, event.bytes);
    schedule(std::max(now_, station.free_at), Happening::kArrived, event.subject, event.bytes,
             event.detail + 1, start);
  }

  void receive(const Event& event) {
    Connection& connection = connections_[index(event.subject)];
    if (connection.dialogue < 0) return;
    Rank& rank = ranks_[index(connection.to)];
    const auto dialogue = index(connection.dialogue);
    connection.received += event.bytes;
    outcome_.microseconds = now_;
    const std::vector<Incoming>& parts = rank.program.dialogues[dialogue].in;
    for (; connection.landing < parts.size(); ++connection.landing) {
      const Incoming& part = parts[connection.landing];
      if (connection.received <= part.begin) break;
      const std::uint64_t there = std::min(part.range.bytes, connection.received - part.begin);
      if (!part.staged) advance(connection.to, part.track, there);
      if (there < part.range.bytes) break;
    }
    const std::vector<Reader>& readers = rank.readers[dialogue];
    for (std::size_t i = rank.reading[dialogue]; i < readers.size(); ++i) {
      const Reader reader = readers[i];
      if (connection.received <= reader.begin) break;
      const Merge& read = rank.program.merges[index(reader.merge)];
      if (connection.received >= reader.begin + read.out.bytes) rank.reading[dialogue] = i + 1;
      merge(connection.to, reader.merge);
    }
  }

  void advance(int which, Track track, std::uint64_t bytes) {
    Rank& rank = ranks_[index(which)];
    rank.tracks[index(track)] = bytes;
    for (const int dialogue : rank.senders[index(track)]) {
      refresh(rank.connection_of[index(dialogue)]);
    }
    for (const int one : rank.mergers[index(track)]) merge(which, one);
  }

  std::uint64_t ready_source(int which, const Source& source, std::uint64_t bytes) const {
    if (!source.staged()) return ready_of(which, source.after, bytes);
    const int incoming = ranks_[index(which)].incoming[index(source.dialogue)];
    const std::uint64_t received = incoming < 0 ? 0 : connections_[index(incoming)].received;
    return received > source.begin ? std::min(bytes, received - source.begin) : 0;
  }

  // Starts to reduce what has arrived, if that is worth it.
  void merge(int which, int number) {
    Rank& rank = ranks_[index(which)];
    const Merge& merge = rank.program.merges[index(number)];
    MergeState& state = rank.merges[index(number)];
    if (state.is_running || state.started == merge.out.bytes) return;
    const auto is_worth_it = [&](std::uint64_t ready) {
      return ready > state.started &&
             (ready == merge.out.bytes || ready - state.started >= kSmallestCell);
    };
    const auto ready = [&](std::size_t source) {
      return ready_source(which, merge.sources[source], merge.out.bytes);
    };
    // One look suffices as long as the source that was missing is still missing.
    if (!is_worth_it(ready(state.slowest))) return;
    std::uint64_t least = merge.out.bytes;
    for (std::size_t i = 0; i < merge.sources.size(); ++i) {
      const std::uint64_t there = ready(i);
      if (there < least) state.slowest = i;
      least = std::min(least, there);
    }
    if (!is_worth_it(least)) return;
    const auto more_inputs = static_cast<double>(merge.sources.size() - 1);
    const auto bytes = static_cast<double>(least - state.started);
    state.started = least;
    state.is_running = true;
    schedule(work(which, bytes * more_inputs * network_.reduced_byte), Happening::kMerged, which,
             least, number);
  }

  void end_merge(const Event& event) {
    Rank& rank = ranks_[index(event.subject)];
    rank.merges[index(event.detail)].is_running = false;
    outcome_.microseconds = now_;
    advance(event.subject, rank.program.merges[index(event.detail)].track, event.bytes);
    merge(event.subject, event.detail);
  }

  bool is_complete() const {
    for (const Rank& rank : ranks_) {
      for (std::size_t i = 0; i < rank.merges.size(); ++i) {
        const MergeState& state = rank.merges[i];
        if (state.is_running || state.started != rank.program.merges[i].out.bytes) return false;
      }
      for (std::size_t i = 0; i < rank.incoming.size(); ++i) {
        const std::uint64_t expected = rank.program.dialogues[i].in_bytes;
        if (expected == 0) continue;
        if (rank.incoming[i] < 0) return false;
        if (connections_[index(rank.incoming[i])].received != expected) return false;
      }
    }
    return true;
  }

  const Network& network_;
  Executed executed_;
  std::vector<Rank> ranks_;
  std::uint64_t cell_;
  std::vector<Connection> connections_ = {};
  std::vector<Station> stations_ = {};
  int uplinks_ = 0;
  int memories_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_ = {};
  std::uint64_t scheduled_ = 0;
  double now_ = 0;
  Outcome outcome_ = {};
};

}  // namespace

Outcome execute(const Network& network, int ranks, Symmetry symmetry,
                const std::function<Program(int rank)>& program, std::uint64_t cell) {
  return Execution(network, executed_ranks(network, ranks, symmetry), program, cell).run();
}

}  // namespace muster::collective::model
