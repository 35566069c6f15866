// Reads the rows of all jobs at a server's start. The facts of an ended job stand in its row, and its
// document is compressed without being parsed; other documents are parsed. Either costs several times
// what the database needs to hand the row over, so several threads do it, and the jobs keep their
// order.
//
// On one thread; the reader has threads of its own until it is destroyed.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/records.h"
#include "store/store.h"

namespace muster::store {

/// One row, read as take_record() reads it, into Contents::stored.
void take_job(const RecordRow& row, Contents& into);

class JobReader {
 public:
  /// May throw std::system_error.
  using StartThread = std::function<std::thread(std::function<void()> work)>;
  /// `start`: tests make it fail.
  explicit JobReader(
      Contents& into,
      StartThread start = [](std::function<void()> work) { return std::thread(std::move(work)); });
  ~JobReader();
  JobReader(const JobReader&) = delete;
  JobReader& operator=(const JobReader&) = delete;

  /// Copies the row.
  void add(const RecordRow& row);
  /// Waits until all rows are read.
  void finish();

 private:
  /// A row that owns its bytes.
  struct Row {
    std::vector<std::string> key;
    std::string document;
    int64_t checksum = 0;
    std::string facts;
  };
  struct Piece {
    std::vector<Row> rows;
    Contents read;
    bool is_read = false;
  };

  static constexpr size_t kRowsOfPiece = 256;
  static constexpr size_t kMostThreads = 8;
  static constexpr size_t kMostPieces = 4 * kMostThreads;  ///< in memory

  void hand_over();
  void start_thread();
  void take_front(std::unique_lock<std::mutex>& lock);
  void read(Piece& piece) const;
  void work();

  Contents& into_;
  StartThread start_;
  std::vector<Row> rows_;
  size_t most_threads_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Piece>> pieces_;  ///< in the order of the rows
  size_t begun_ = 0;                           ///< how many of the pieces a thread has taken
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace muster::store
