// The ranks of an MPI launcher: their output, the tags in the launcher's output, and the census of
// ranks that do not sign in.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/rank_files.h"
#include "job/log_record.h"

namespace muster::engine {

// --- output of a rank
//
// How the output of a rank reaches its task's log without passing through mpirun, which mixes the
// lines of ranks and, when it tags them, loses some (Open MPI 4.1, --tag-output).
//
// The rank's agent makes a terminal for its standard output, as mpirun would, and a pipe for its
// standard error, and hands the other ends to process 1 of its task through a socket in the
// generated folder; that hands them on to the shim, which writes them into the log with the rank.
// The rank's program starts once the shim's socket holds them.
//
// Messages on the sockets: the rank as decimal digits, with the two descriptors (SCM_RIGHTS).
// Process 1 answers the rank with one byte, or closes the connection where the output could not be
// passed on.

/// The other ends of a rank's output.
struct RankOutput {
  int rank = 0;
  base::UniqueFd terminal;  ///< its standard output
  base::UniqueFd error;     ///< its standard error
};

/// Listens on the socket "output" in `generated_folder`. Non-blocking.
base::Result<base::UniqueFd> listen_for_ranks(const std::string& generated_folder);

/// Sends a rank's output on over a connected SOCK_SEQPACKET socket.
bool send_rank_output(int socket, const RankOutput& output);

/// Lets the rank that sent its output over this connection go on.
void answer_rank(int socket);

/// A message as recvmsg(2) gave it: its text, and the descriptors that came with it, if any.
struct Message {
  std::string text;
  std::vector<base::UniqueFd> descriptors;
};

/// Empty text: the other side is gone. kUnavailable: nothing is there to read now.
base::Result<Message> receive_message(int socket);

/// A message that is a rank's output; nullopt for any other.
std::optional<RankOutput> rank_output_of(Message& message);

// --- tags in the output of a launcher
//
// The ranks in what a launcher prints: where its lines begin with a tag that says which rank
// printed them, the tag is taken off and the bytes are that rank's.
//
//   [1,3]<stdout>:text        Open MPI, mpirun --tag-output (from 5.0 on with a blank behind it)
//   [3]<stderr>:text          horovodrun
//   [3] text                  MPICH and Intel MPI, mpiexec -l: only where that was asked for, since
//                             programs begin lines so, too
//
// A tag of the first two forms may also stand within a line that began with one: of a rank that
// prints a line in pieces, mpirun tags each piece.
//
// Pure. One for each stream of a task.

class RankTags {
 public:
  /// Bytes of one rank, or of none; never empty.
  using Emit =
      std::function<void(std::optional<int> rank, job::LogStream stream, std::string_view bytes)>;

  /// `stream`: of what has no tag. `bare`: lines are known to begin with "[3] ".
  RankTags(job::LogStream stream, bool bare) : stream_(stream), bare_(bare), line_stream_(stream) {}

  /// What may be the beginning of a tag is held back until it is seen whether it is.
  void add(std::string_view bytes, const Emit& emit);

  /// Nothing more comes.
  void finish(const Emit& emit);

 private:
  struct Tag {
    int rank = 0;
    job::LogStream stream = job::LogStream::kOutput;
    size_t size = 0;
    bool bare = false;
  };
  enum class Found { kTag, kNone, kUndecided };

  Found read_tag(std::string_view text, Tag& tag) const;
  size_t size_of(const Tag& tag, std::string_view text);
  size_t plain_bytes(std::string_view text) const;
  void take(std::string_view bytes, const Emit& emit);

  job::LogStream stream_;
  bool bare_;
  std::string held_;
  std::optional<int> rank_;     ///< of the present line
  job::LogStream line_stream_;  ///< and its stream
  bool at_start_ = true;        ///< of a line
  bool in_tagged_ = false;      ///< in a line that began with a tag of the longer forms
  bool blank_behind_ = true;    ///< every tag so far had one
};

// --- census
//
// The rank census of those MPIs whose ranks do not sign in: MPICH's and Intel's launcher (Hydra)
// has a proxy on each host, and the proxy starts the ranks. They are its children, and say in their
// environment which they are: PMI_RANK of PMI_SIZE.
//
// They are looked for below the process that looks, often while something was just started there
// and then seldom. A rank that is over sooner than it is looked for is not found: the census is of
// worlds that train, which live longer.

/// What an environment, as /proc/PID/environ has it, says of the rank that it belongs to.
///
/// Pure.
std::optional<SignedRank> rank_of_environment(std::string_view environment);

/// The ranks that the proxies below `root` have started. `proc`: another in tests.
std::vector<SignedRank> ranks_below(pid_t root, const std::filesystem::path& proc = "/proc");

/// When to look, and what to write down. Not thread-safe.
class RankWatch {
 public:
  using Steady = std::chrono::steady_clock;

  /// `folder`: where ranks sign in (rank_files.h).
  explicit RankWatch(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Something was started that may start ranks.
  void started(Steady::time_point now);

  /// When to look again; nullopt: nothing was ever started.
  std::optional<Steady::time_point> due() const { return due_; }

  /// Looks below this process, and signs in who is new, and as kHangs that a rank hangs.
  void look();

 private:
  std::filesystem::path folder_;
  std::optional<Steady::time_point> started_;
  std::optional<Steady::time_point> due_;
  std::map<int, int> signed_in_;
  std::map<pid_t, Steady::time_point> hanging_;  ///< since when
};

/// Those of `ranks_below` that wait in MPI_Finalize and can never leave it. Of MPICH over UCX and
/// TCP a rank that leaves waits for an answer of each rank that it has sent something to, and ranks
/// that have left answer no more: they wait in a barrier of the process manager (a read of PMI_FD).
/// A question that one has not read is 25 bytes long; 9 bytes are the farewell of another rank.
std::vector<pid_t> hanging_below(pid_t root, const std::filesystem::path& proc = "/proc");

/// How long to wait after a look that took `cost`, `age` after the last start.
///
/// Pure.
std::chrono::nanoseconds pause_after(std::chrono::nanoseconds age, std::chrono::nanoseconds cost);

}  // namespace muster::engine
