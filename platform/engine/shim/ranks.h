// The ranks that an MPI launcher starts: how their output reaches the log, the tags in the output
// of the launcher, and the census of ranks that do not sign in themselves.
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
// The output of a rank goes to its task's log directly. mpirun would mix the lines of ranks, and
// with tags it loses lines (Open MPI 4.1, --tag-output).
//
// muster-shim --rank runs before the program of a rank. It makes a terminal for the standard
// output, as mpirun does, and a pipe for the standard error. It sends the other ends to process 1
// of the task, through a socket in the generated folder. Process 1 sends them to the shim, which
// copies the output to the log with the number of the rank. The program starts once the ends are in
// the shim's socket.
//
// Messages on the sockets: the rank as decimal digits, with the two descriptors (SCM_RIGHTS).
// Process 1 answers the rank with one byte. It closes the connection if it could not send the ends
// to the shim.

/// The shim's ends of the output of a rank.
struct RankOutput {
  int rank = 0;
  base::UniqueFd terminal;  ///< standard output
  base::UniqueFd error;     ///< standard error
};

/// Listens on the socket "output" in `generated_folder`. The socket is non-blocking.
base::Result<base::UniqueFd> listen_for_ranks(const std::string& generated_folder);

/// Sends the output of a rank over a connected SOCK_SEQPACKET socket. False: not sent.
bool send_rank_output(int socket, const RankOutput& output);

/// Answers a rank: it may start its program.
void answer_rank(int socket);

/// A message of recvmsg(2): its text, and the descriptors that came with it.
struct Message {
  std::string text;
  std::vector<base::UniqueFd> descriptors;
};

/// Empty text: the other end is closed. kUnavailable: there is no message now.
base::Result<Message> receive_message(int socket);

/// Takes the output of a rank from a message; nullopt: the message is of another kind.
std::optional<RankOutput> rank_output_of(Message& message);

// --- tags in the output of a launcher
//
// Some launchers can put a tag with the rank before each line of output:
//
//   [1,3]<stdout>:text        Open MPI, mpirun --tag-output (from 5.0 on: a blank after the tag)
//   [3]<stderr>:text          horovodrun
//   [3] text                  MPICH and Intel MPI, mpiexec -l
//
// Programs print lines that begin like the last form, so it counts as a tag only if the launcher
// has that flag. A tag of the first two forms may also be within a line that began with a tag: when
// a rank prints a line in pieces, mpirun tags each piece.

/// Removes the tags from one stream of a launcher's output, and assigns the bytes to ranks. Pure.
class RankTags {
 public:
  /// Bytes of one rank, or without a rank; never empty.
  using Emit =
      std::function<void(std::optional<int> rank, job::LogStream stream, std::string_view bytes)>;

  /// `stream`: the stream of bytes without a tag. `bare`: "[3] " is a tag.
  RankTags(job::LogStream stream, bool bare) : stream_(stream), bare_(bare), line_stream_(stream) {}

  /// Takes the next bytes. Bytes that may be the beginning of a tag are held back until the tag is
  /// complete or impossible.
  void add(std::string_view bytes, const Emit& emit);

  /// The stream has ended: emits the bytes that are held back.
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
  std::optional<int> rank_;     ///< rank of the current line
  job::LogStream line_stream_;  ///< stream of the current line
  bool at_start_ = true;        ///< the next byte begins a line
  bool in_tagged_ = false;      ///< the current line began with a tag of the longer forms
  bool blank_behind_ = true;    ///< every tag so far had a blank after it
};

// --- census
//
// Ranks of MPICH and Intel MPI do not sign in themselves. Their launcher (Hydra) starts a proxy on
// each host, and the ranks are children of the proxy. Their environment contains their number and
// the number of all ranks: PMI_RANK and PMI_SIZE.
//
// The inner half looks for such ranks among its descendants: often after a program was started, and
// then less and less often. A rank that ends before the next look is missed, which does not matter
// for ranks that train.

/// The rank to which an environment belongs, in the format of /proc/PID/environ. nullopt: none.
///
/// Pure.
std::optional<SignedRank> rank_of_environment(std::string_view environment);

/// The ranks that the proxies below `root` have started. `proc`: another folder in tests.
std::vector<SignedRank> ranks_below(pid_t root, const std::filesystem::path& proc = "/proc");

/// Decides when to look, and signs in the ranks that it finds. Not thread-safe.
class RankWatch {
 public:
  using Steady = std::chrono::steady_clock;

  /// `folder`: the folder in which ranks sign in (rank_files.h).
  explicit RankWatch(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// A program was started that may start ranks.
  void started(Steady::time_point now);

  /// When to call look(); nullopt: no program was started yet.
  std::optional<Steady::time_point> due() const { return due_; }

  /// Looks for ranks below this process. Signs in new ranks, and writes down (kHangs) that a rank
  /// hangs.
  void look();

 private:
  std::filesystem::path folder_;
  std::optional<Steady::time_point> started_;
  std::optional<Steady::time_point> due_;
  std::map<int, int> signed_in_;
  std::map<pid_t, Steady::time_point> hanging_;  ///< hanging ranks, and since when each hangs
};

/// The ranks below `root` that wait in MPI_Finalize and can never leave it. This happens with MPICH
/// over UCX and TCP: a rank in MPI_Finalize waits for an answer from each rank that it has sent
/// data to. A rank that has passed this point no longer answers: it waits in a barrier of the
/// process manager (it reads PMI_FD). Its socket then holds an unread question of 25 bytes; 9
/// unread bytes are another rank's farewell and harmless.
std::vector<pid_t> hanging_below(pid_t root, const std::filesystem::path& proc = "/proc");

/// The pause after a look that took `cost`. `age`: the time since a program was last started.
///
/// Pure.
std::chrono::nanoseconds pause_after(std::chrono::nanoseconds age, std::chrono::nanoseconds cost);

}  // namespace muster::engine
