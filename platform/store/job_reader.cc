#include "store/job_reader.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace muster::store {

void take_job(const RecordRow& row, Contents& into) {
  if (!row.facts.empty() && verify_record(row)) {
    auto packed = PackedJob::from_row(row.facts, row.document, row.checksum);
    if (packed) return into.stored.push_back({.open = nullptr, .ended = std::move(packed)});
  }
  Contents one;
  take_record(job_kind(), row, one);
  for (Unreadable& record : one.unreadable) {
    record.jobs_before = into.stored.size();
    into.unreadable.push_back(std::move(record));
  }
  for (job::Job& job : one.jobs) {
    if (job::is_final(job.phase)) {
      into.stored.push_back({.open = nullptr, .ended = PackedJob(job, row.document)});
    } else {
      into.stored.push_back({.open = std::make_unique<job::Job>(std::move(job)), .ended = {}});
    }
  }
}

JobReader::JobReader(Contents& into, StartThread start)
    : into_(into),
      start_(std::move(start)),
      most_threads_(std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads)) {}

JobReader::~JobReader() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void JobReader::add(const RecordRow& row) {
  rows_.push_back({.key = {row.key.begin(), row.key.end()},
                   .document = std::string(row.document),
                   .checksum = row.checksum,
                   .facts = std::string(row.facts)});
  if (rows_.size() >= kRowsOfPiece) hand_over();
}

void JobReader::finish() {
  hand_over();
  std::unique_lock lock(mutex_);
  while (!pieces_.empty()) take_front(lock);
}

/// A store with a few jobs needs no thread but this one.
void JobReader::hand_over() {
  auto piece = std::make_unique<Piece>();
  piece->rows = std::exchange(rows_, {});
  std::unique_lock lock(mutex_);
  if (threads_.size() < most_threads_ && piece->rows.size() >= kRowsOfPiece) {
    start_thread();
  }
  pieces_.push_back(std::move(piece));
  changed_.notify_all();
  while (pieces_.size() > kMostPieces) take_front(lock);
}

/// If no thread can be started, as at a limit of processes, the threads that run already and this
/// thread read all pieces.
void JobReader::start_thread() {
  try {
    threads_.push_back(start_([this] { work(); }));
  } catch (const std::system_error&) {
    most_threads_ = threads_.size();
  }
}

/// Adds what the first piece contains; reads it here if no thread has begun to.
void JobReader::take_front(std::unique_lock<std::mutex>& lock) {
  Piece& front = *pieces_.front();
  if (begun_ == 0) {
    ++begun_;
    lock.unlock();
    read(front);
    lock.lock();
    front.is_read = true;
  }
  changed_.wait(lock, [&] { return front.is_read; });
  const std::unique_ptr<Piece> piece = std::move(pieces_.front());
  pieces_.pop_front();
  --begun_;
  for (Unreadable& record : piece->read.unreadable) {
    record.jobs_before += into_.stored.size();
    into_.unreadable.push_back(std::move(record));
  }
  std::move(piece->read.stored.begin(), piece->read.stored.end(), std::back_inserter(into_.stored));
}

void JobReader::read(Piece& piece) const {
  for (const Row& row : piece.rows) {
    take_job({.key = {row.key.begin(), row.key.end()},
              .document = row.document,
              .checksum = row.checksum,
              .facts = row.facts},
             piece.read);
  }
  piece.rows.clear();
}

void JobReader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_over_ || begun_ < pieces_.size(); });
    if (is_over_) return;
    Piece& piece = *pieces_[begun_++];
    lock.unlock();
    read(piece);
    lock.lock();
    piece.is_read = true;
    changed_.notify_all();
  }
}

}  // namespace muster::store
