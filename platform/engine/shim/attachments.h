// Those who sit before a task's program, as the shim's outer half serves them: any number, each of
// which hears all output from when it came, and all of whom the program hears.
//
// Nobody holds the program up. An attacher that reads too slowly has some of the output left out,
// and is told how much of it; input that the program does not take is not read from them either.
// The terminal has the size that was told last.
//
// Owned and called by one thread, the one that polls: watch() before, serve() after.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/shim/attach_wire.h"
#include "job/log_record.h"

namespace muster::engine {

class Attachments {
 public:
  /// What of the output waits for one attacher at most; the socket holds some more.
  static constexpr size_t kMostWaiting = 1 << 20;
  /// What of the input waits for the program, until no more is read.
  static constexpr size_t kMostInput = 256 << 10;
  /// More than these are turned away.
  static constexpr size_t kMostAttached = 100;

  /// The socket "attach" in the task's folder.
  base::Result<void> listen(const std::string& task_folder);

  /// Where the program's input goes: a pipe's end or a terminal's master; without it, nowhere.
  void set_input(base::UniqueFd input, bool is_terminal);

  /// Appends what is to be polled.
  void watch(std::vector<pollfd>& polled) const;
  /// What watch() appended, polled.
  void serve(std::span<const pollfd> polled);

  void output(job::LogStream stream, std::string_view bytes);

  /// Nothing more comes: removes the socket from the folder, hands over what still waits, for a
  /// moment, and lets all go.
  void finish();

 private:
  struct Attached {
    base::UniqueFd socket;
    std::deque<std::string> packets;  ///< that wait
    size_t waiting = 0;               ///< bytes in them
    uint64_t left_out = 0;            ///< bytes that no packet tells of yet
  };

  void accept_all();
  void hear(Attached& one);
  void heed(const AttachMessage& message);
  void write_input();
  void resize(const AttachSize& size);
  void hint_redraw() const;
  static void queue(Attached& one, std::string packet);
  static void send_waiting(Attached& one);
  bool takes_input() const { return input_.size() < kMostInput; }

  base::UniqueFd listener_;
  std::string path_;  ///< of the listening socket; empty before listen()
  base::UniqueFd to_program_;
  bool is_terminal_ = false;
  bool input_ends_ = false;  ///< when what waits is written
  std::string input_;
  std::vector<Attached> attached_;
};

}  // namespace muster::engine
