// Joins standard input and output with a connection to a port of the task.
//
// Blocking; I/O.
#pragma once

namespace muster::engine {

/// Looks for a listener at 127.0.0.1, ::1 and the addresses that /etc/hosts gives for this host's
/// name, in that order. The end of the input closes that half of the connection, and the end of
/// what comes from there closes standard output; both ends end it.
///
/// The exit code. What went wrong is said on standard error, as workspace/copy_report.h has it.
int connect_port(int port);

}  // namespace muster::engine
