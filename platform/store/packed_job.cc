#include "store/packed_job.h"

#include <zlib.h>

#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "store/records.h"

namespace muster::store {

namespace {

constexpr int kLevel = 3;
/// A window of 8 KiB, without zlib's header. A larger one costs more to clear than it gains.
constexpr int kWindowBits = -13;
constexpr size_t kWindow = size_t{1} << 13;
constexpr int kMemoryLevel = 6;

/// Behind the facts in a block; the compressed document follows.
struct DocumentHead {
  uint32_t size = 0;  ///< of the document
  uint32_t compressed = 0;
  uint32_t dictionary = 0;  ///< its number
};

/// The dictionaries of a process. They are never removed: packed jobs refer to them.
class Dictionaries {
 public:
  struct Dictionary {
    uint32_t number = 0;
    std::string_view bytes;
  };

  /// The dictionary of an owner, whose first document this may be.
  Dictionary of(const std::string& owner, std::string_view document) {
    const std::lock_guard lock(mutex_);
    const auto known = by_owner_.find(owner);
    if (known != by_owner_.end()) return at(known->second);
    if (all_.size() >= kMost) return at(0);
    const auto number = static_cast<uint32_t>(all_.size());
    all_.emplace_back(document.substr(document.size() - std::min(document.size(), kWindow)));
    by_owner_.emplace(owner, number);
    return at(number);
  }

  std::string_view with_number(uint32_t number) const {
    const std::lock_guard lock(mutex_);
    return at(number).bytes;
  }

 private:
  /// Later owners share the first one: 2,000 dictionaries are at most 16 MiB.
  static constexpr size_t kMost = 2000;

  Dictionary at(uint32_t number) const { return {number, all_.at(number)}; }

  mutable std::mutex mutex_;
  std::deque<std::string> all_;  ///< elements keep their addresses
  std::map<std::string, uint32_t> by_owner_;
};

Dictionaries& dictionaries() {
  static Dictionaries all;
  return all;
}

/// zlib reads them only.
Bytef* bytes_of(std::string_view text) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
}

/// zlib's state, which is expensive to make. zlib fails only if memory runs out, or on damaged
/// input.
class Deflater {
 public:
  Deflater() {
    if (::deflateInit2(&stream_, kLevel, Z_DEFLATED, kWindowBits, kMemoryLevel,
                       Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~Deflater() { ::deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  /// Valid until the next call.
  std::string_view compress(std::string_view text, std::string_view dictionary) {
    ::deflateReset(&stream_);
    ::deflateSetDictionary(&stream_, bytes_of(dictionary), static_cast<uInt>(dictionary.size()));
    buffer_.resize(::deflateBound(&stream_, text.size()));
    stream_.next_in = bytes_of(text);
    stream_.avail_in = static_cast<uInt>(text.size());
    stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_out = static_cast<uInt>(buffer_.size());
    ::deflate(&stream_, Z_FINISH);
    return std::string_view(buffer_).substr(0, buffer_.size() - stream_.avail_out);
  }

 private:
  z_stream stream_{};
  std::string buffer_;
};

class Inflater {
 public:
  Inflater() {
    if (::inflateInit2(&stream_, kWindowBits) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// As much of the text as can be restored.
  std::string restore(std::string_view compressed, size_t size, std::string_view dictionary) {
    std::string text(size, '\0');
    ::inflateReset(&stream_);
    ::inflateSetDictionary(&stream_, bytes_of(dictionary), static_cast<uInt>(dictionary.size()));
    stream_.next_in = bytes_of(compressed);
    stream_.avail_in = static_cast<uInt>(compressed.size());
    stream_.next_out = reinterpret_cast<Bytef*>(text.data());
    stream_.avail_out = static_cast<uInt>(text.size());
    ::inflate(&stream_, Z_FINISH);
    text.resize(size - stream_.avail_out);
    return text;
  }

 private:
  z_stream stream_{};
};

}  // namespace

PackedJob::PackedJob(const job::Job& job, std::string_view document) {
  static thread_local Deflater deflater;
  const std::string facts = job::pack_facts(job);
  const Dictionaries::Dictionary dictionary = dictionaries().of(job.owner, document);
  const std::string_view compressed = deflater.compress(document, dictionary.bytes);
  const DocumentHead head{.size = static_cast<uint32_t>(document.size()),
                          .compressed = static_cast<uint32_t>(compressed.size()),
                          .dictionary = dictionary.number};
  block_.reset(new char[facts.size() + sizeof head + compressed.size()]);
  char* at = block_.get();
  const auto append = [&](const void* bytes, size_t size) {
    std::memcpy(at, bytes, size);
    at += size;
  };
  append(facts.data(), facts.size());
  append(&head, sizeof head);
  append(compressed.data(), compressed.size());
}

namespace {

/// The head of the document behind the facts, and where the document begins.
std::pair<DocumentHead, const char*> document_in(const char* block) {
  const char* const at = block + job::packed_size(block);
  DocumentHead head;
  std::memcpy(&head, at, sizeof head);
  return {head, at + sizeof head};
}

}  // namespace

std::string PackedJob::document() const {
  static thread_local Inflater inflater;
  const auto [head, bytes] = document_in(block_.get());
  return inflater.restore({bytes, head.compressed}, head.size,
                          dictionaries().with_number(head.dictionary));
}

base::Result<job::Job> PackedJob::job() const {
  return from_document<job::Job>(document());
}

size_t PackedJob::size() const {
  return job::packed_size(block_.get()) + sizeof(DocumentHead) +
         document_in(block_.get()).first.compressed;
}

}  // namespace muster::store
