// For tests: real output of launchers when one of their processes failed. Open MPI 4.1.4, MPICH
// 4.0.2 and torchrun of torch 1.13 each ran two processes, on two workers or on the same host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::control {

/// The lines of a raw string that begins with a newline.
inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  text.remove_prefix(1);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

// `exit 3` in rank 1.
inline constexpr std::string_view kOpenMpiExit3 = R"(
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[58491,1],1]
  Exit code:    3
--------------------------------------------------------------------------
)";

// `kill -9 $$` in rank 1.
inline constexpr std::string_view kOpenMpiKilled = R"(
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
--------------------------------------------------------------------------
mpirun noticed that process rank 1 with PID 11 on node dist-worker-1 exited on signal 9 (Killed).
--------------------------------------------------------------------------
)";

// `kill -9` of the orted of worker-0.
inline constexpr std::string_view kOpenMpiLostDaemon = R"(
--------------------------------------------------------------------------
ORTE has lost communication with a remote daemon.

  HNP daemon   : [[14026,0],0] on node dist-launcher
  Remote daemon: [[14026,0],1] on node dist-worker-0

This is usually due to either a failure of the TCP network
connection to the node, or possibly an internal failure of
the daemon itself. We cannot recover from this failure, and
therefore will terminate the job.
--------------------------------------------------------------------------
Killed
)";

// `kill -9` of the sshd that held the session of worker-1.
inline constexpr std::string_view kOpenMpiLostSession = R"(
Connection to 127.44.0.3 closed by remote host.
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
This usually is caused by:

* not finding the required libraries and/or binaries on
  one or more nodes. Please check your PATH and LD_LIBRARY_PATH
  settings, or configure OMPI with --enable-orterun-prefix-by-default

* lack of authority to execute on one or more specified nodes.
  Please verify your allocation and authorities.

* the inability to write startup files into /tmp (--tmpdir/orte_tmpdir_base).
  Please check with your sys admin to determine the correct location to use.

*  compilation of the orted with dynamic libraries when static are required
  (e.g., on Cray). Please check your configure cmd line and consider using
  one of the contrib/platform definitions for your system type.

* an inability to create a connection back to mpirun due to a
  lack of common network interfaces and/or no route found between
  them. Please check network connectivity (including firewalls
  and network routing requirements).
--------------------------------------------------------------------------
)";

// A program that writes to address 0 in rank 1; its output passed through mpirun.
inline constexpr std::string_view kOpenMpiSegfault = R"(
[dist-worker-1:00011] *** Process received signal ***
[dist-worker-1:00011] Signal: Segmentation fault (11)
[dist-worker-1:00011] Signal code: Address not mapped (1)
[dist-worker-1:00011] Failing at address: (nil)
[dist-worker-1:00011] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7f5d2a645050]
[dist-worker-1:00011] [ 1] ./train(+0x11b5)[0x563ecb9371b5]
[dist-worker-1:00011] *** End of error message ***
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
--------------------------------------------------------------------------
mpirun noticed that process rank 1 with PID 11 on node dist-worker-1 exited on signal 11 (Segmentation fault).
--------------------------------------------------------------------------
)";

inline constexpr std::string_view kOpenMpiAbort = R"(
--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD
with errorcode 5.

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
You may or may not see output from other processes, depending on
exactly when Open MPI kills them.
--------------------------------------------------------------------------
)";

// Rank 1 calls exit(0) after MPI_Init.
inline constexpr std::string_view kOpenMpiUnfinalized = R"(
--------------------------------------------------------------------------
mpirun has exited due to process rank 1 with PID 0 on
node dist-worker-1 exiting improperly. There are three reasons this could occur:

1. this process did not call "init" before exiting, but others in
the job did. This can cause a job to hang indefinitely while it waits
for all processes to call "init". By rule, if one process calls "init",
then ALL processes must call "init" prior to termination.

2. this process called "init", but exited without calling "finalize".
By rule, all processes that call "init" MUST call "finalize" prior to
exiting or it will be considered an "abnormal termination"

3. this process called "MPI_Abort" or "orte_abort" and the mca parameter
orte_create_session_dirs is set to false. In this case, the run-time cannot
detect that the abort call was an abnormal termination. Hence, the only
error message you will receive is this one.

This may have caused other processes in the application to be
terminated by signals sent by mpirun (as reported here).

You can avoid this message by specifying -quiet on the mpirun command line.
--------------------------------------------------------------------------
)";

// A program without execute permission.
inline constexpr std::string_view kOpenMpiNotExecutable = R"(
--------------------------------------------------------------------------
mpirun was unable to launch the specified application as it could not access
or execute an executable:

Executable: ./train
Node: dist-worker-0

while attempting to start process rank 0.
--------------------------------------------------------------------------
2 total processes failed to start
)";

// ssh was refused by one of two workers.
inline constexpr std::string_view kOpenMpiRefusedLogin = R"(
root@dist-worker-0: Permission denied (publickey).
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
This usually is caused by:

* not finding the required libraries and/or binaries on
  one or more nodes. Please check your PATH and LD_LIBRARY_PATH
  settings, or configure OMPI with --enable-orterun-prefix-by-default

* lack of authority to execute on one or more specified nodes.
  Please verify your allocation and authorities.

* the inability to write startup files into /tmp (--tmpdir/orte_tmpdir_base).
  Please check with your sys admin to determine the correct location to use.

*  compilation of the orted with dynamic libraries when static are required
  (e.g., on Cray). Please check your configure cmd line and consider using
  one of the contrib/platform definitions for your system type.

* an inability to create a connection back to mpirun due to a
  lack of common network interfaces and/or no route found between
  them. Please check network connectivity (including firewalls
  and network routing requirements).
--------------------------------------------------------------------------
--------------------------------------------------------------------------
ORTE does not know how to route a message to the specified daemon
located on the indicated node:

  my node:   launcher
  target node:  dist-worker-1

This is usually an internal programming error that should be
reported to the developers. In the meantime, a workaround may
be to set the MCA param routed=direct on the command line or
in your environment. We apologize for the problem.
--------------------------------------------------------------------------
)";

// `mpirun -H dist-worker-0,foo`.
inline constexpr std::string_view kOpenMpiUnknownHost = R"(
[dist-launcher:00003] plm:rsh: Warning: setpgid(8,8) failed in parent with errno=Permission denied(13)
ssh: Could not resolve hostname foo: Name or service not known
--------------------------------------------------------------------------
ORTE was unable to reliably start one or more daemons.
This usually is caused by:

* not finding the required libraries and/or binaries on
  one or more nodes. Please check your PATH and LD_LIBRARY_PATH
  settings, or configure OMPI with --enable-orterun-prefix-by-default
--------------------------------------------------------------------------
--------------------------------------------------------------------------
ORTE does not know how to route a message to the specified daemon
located on the indicated node:

  my node:   dist-launcher
  target node:  foo

This is usually an internal programming error that should be
reported to the developers. In the meantime, a workaround may
be to set the MCA param routed=direct on the command line or
in your environment. We apologize for the problem.
--------------------------------------------------------------------------
)";

// A script whose first line is #!/usr/bin/pythn3.
inline constexpr std::string_view kOpenMpiNoInterpreter = R"(
--------------------------------------------------------------------------
Open MPI tried to fork a new process via the "execve" system call but
failed.  Open MPI checks many things before attempting to launch a
child process, but nothing is perfect. This error may be indicative
of another problem on the target host, or even something as silly as
having specified a directory for your application. Your job will now
abort.

  Local host:        dist-worker-0
  Working dir:       /home/ada
  Application name:  ./train.py
  Error:             ./train.py has a bad interpreter on the first line.
--------------------------------------------------------------------------
)";

inline constexpr std::string_view kOpenMpiNotFound = R"(
--------------------------------------------------------------------------
mpirun was unable to find the specified executable file, and therefore
did not launch the job.  This error was first reported for process
rank 1; it may have occurred for other processes as well.

NOTE: A common cause for this error is misspelling a mpirun command
      line parameter option (remember that mpirun interprets the first
      unrecognized command line token as the executable).

Node:       dist-worker-1
Executable: nosuchprog
--------------------------------------------------------------------------
2 total processes failed to start
)";

inline constexpr std::string_view kMpichKilled = R"(
rank 1 here
about to fail

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 9 RUNNING AT dist-worker-1
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
rank 0 here
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
)";

// Both ranks on one host: the output names the process that the launcher killed itself.
inline constexpr std::string_view kMpichSegfaultBesideOthers = R"(

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 14248 RUNNING AT dist-worker-0
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
)";

inline constexpr std::string_view kMpichSegfault = R"(
[dist-worker-1:9    :0:9] Caught signal 11 (Segmentation fault: address not mapped to object at address (nil))
 4  ./train(+0x11b0) [0x55a715f621b0]
=================================

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 9 RUNNING AT dist-worker-1
=   EXIT CODE: 11
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
[proxy:0:0@dist-worker-0] HYD_pmcd_pmip_control_cmd_cb (pm/pmiserv/pmip_cb.c:899): assert (!closed) failed
[proxy:0:0@dist-worker-0] HYDT_dmxu_poll_wait_for_event (tools/demux/demux_poll.c:76): callback returned error status
[proxy:0:0@dist-worker-0] main (pm/pmiserv/pmip.c:169): demux engine error waiting for event
[mpiexec@dist-launcher] HYDT_bscu_wait_for_completion (tools/bootstrap/utils/bscu_wait.c:73): one of the processes terminated badly; aborting
[mpiexec@dist-launcher] HYDT_bsci_wait_for_completion (tools/bootstrap/src/bsci_wait.c:21): launcher returned error waiting for completion
[mpiexec@dist-launcher] HYD_pmci_wait_for_completion (pm/pmiserv/pmiserv_pmci.c:179): launcher returned error waiting for completion
[mpiexec@dist-launcher] main (ui/mpich/mpiexec.c:325): process manager error waiting for completion
)";

inline constexpr std::string_view kMpichAbort = R"(
Abort(5) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 5) - process 1
)";

// torchrun on one node; rank 1 raises.
inline constexpr std::string_view kTorchrunRaised = R"(
Traceback (most recent call last):
  File "/home/ada/train.py", line 4, in <module>
    if r==1: raise ValueError("bad value in rank 1")
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: bad value in rank 1
WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 15468 closing signal SIGTERM
ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 1 (pid: 15469) of binary: /usr/bin/python3
Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/torch/distributed/run.py", line 762, in main
    run(args)
  File "/usr/lib/python3/dist-packages/torch/distributed/launcher/api.py", line 246, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_01:56:04
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 15469)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
)";

inline constexpr std::string_view kTorchrunKilled = R"(
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
======================================================
train.py FAILED
------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_01:56:11
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 15477)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 15477
======================================================
)";

}  // namespace muster::control
