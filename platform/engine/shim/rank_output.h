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
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

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

/// Runs as the rank (muster-shim --rank PROGRAM ARGUMENTS...): gives away its output and becomes
/// the program. Where the output is not taken it stays mpirun's. Returns an exit code only on
/// failure.
int run_rank(char** program);

}  // namespace muster::engine
