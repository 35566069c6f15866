#include "store/packed_job.h"

#include <zstd.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>

#include "store/records.h"

namespace muster::store {

namespace {

constexpr int kLevel = 3;
constexpr size_t kLongestDictionary = size_t{4} << 10;

struct FreeZstd {
  void operator()(ZSTD_CDict* dictionary) const { ::ZSTD_freeCDict(dictionary); }
  void operator()(ZSTD_CCtx* context) const { ::ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ::ZSTD_freeDCtx(context); }
};

template <class Made>
std::unique_ptr<Made, FreeZstd> made(Made* object) {
  if (object == nullptr) throw std::bad_alloc();
  return std::unique_ptr<Made, FreeZstd>(object);
}

/// Behind the facts in a block; the compressed document follows.
struct DocumentHead {
  uint32_t size = 0;  ///< of the document
  uint32_t compressed = 0;
  uint32_t dictionary = 0;  ///< its number
};

/// The beginning of a document that resembles others. `ready` is its prepared form, which takes some
/// 40 KiB and costs as much as compressing several documents.
struct Dictionary {
  Dictionary(std::string_view document, uint32_t dictionary_number)
      : number(dictionary_number),
        bytes(document.substr(0, kLongestDictionary)),
        ready(made(::ZSTD_createCDict(bytes.data(), bytes.size(), kLevel))) {}

  uint32_t number;
  std::string bytes;
  std::unique_ptr<ZSTD_CDict, FreeZstd> ready;
};

/// The dictionaries of a process. They are never removed: packed jobs refer to them.
class Dictionaries {
 public:
  /// The dictionary of an owner, whose first document this may be.
  const Dictionary& of(const std::string& owner, std::string_view document) {
    const std::lock_guard lock(mutex_);
    const auto known = by_owner_.find(owner);
    if (known != by_owner_.end()) return *known->second;
    if (all_.size() >= kMost) return all_.front();
    const Dictionary& added = all_.emplace_back(document, static_cast<uint32_t>(all_.size()));
    by_owner_.emplace(owner, &added);
    return added;
  }

  const Dictionary& with_number(uint32_t number) const {
    const std::lock_guard lock(mutex_);
    return all_.at(number);
  }

 private:
  /// Later owners share the first one.
  static constexpr size_t kMost = 1000;

  mutable std::mutex mutex_;
  std::deque<Dictionary> all_;  ///< elements keep their addresses
  std::map<std::string, const Dictionary*> by_owner_;
};

Dictionaries& dictionaries() {
  static Dictionaries all;
  return all;
}

/// Kept for many documents, since Zstandard's state is expensive to make. Compression fails only if memory
/// runs out.
class Compressor {
 public:
  Compressor() : context_(made(::ZSTD_createCCtx())) {
    // DocumentHead has the size. The block stays in memory, so it needs no checksum.
    for (const auto flag : {ZSTD_c_contentSizeFlag, ZSTD_c_checksumFlag, ZSTD_c_dictIDFlag}) {
      ::ZSTD_CCtx_setParameter(context_.get(), flag, 0);
    }
  }

  /// Valid until the next call.
  std::string_view compress(std::string_view text, const Dictionary& dictionary) {
    buffer_.resize(::ZSTD_compressBound(text.size()));
    ::ZSTD_CCtx_refCDict(context_.get(), dictionary.ready.get());
    const size_t size =
        ::ZSTD_compress2(context_.get(), buffer_.data(), buffer_.size(), text.data(), text.size());
    if (::ZSTD_isError(size) != 0) throw std::bad_alloc();
    return {buffer_.data(), size};
  }

 private:
  std::unique_ptr<ZSTD_CCtx, FreeZstd> context_;
  std::string buffer_;
};

class Restorer {
 public:
  Restorer() : context_(made(::ZSTD_createDCtx())) {}

  /// Empty: the input is damaged.
  std::string restore(std::string_view compressed, size_t size, const Dictionary& dictionary) {
    std::string text(size, '\0');
    const size_t restored = ::ZSTD_decompress_usingDict(
        context_.get(), text.data(), text.size(), compressed.data(), compressed.size(),
        dictionary.bytes.data(), dictionary.bytes.size());
    if (restored != size) text.clear();
    return text;
  }

 private:
  std::unique_ptr<ZSTD_DCtx, FreeZstd> context_;
};

}  // namespace

namespace {

/// Before the facts in a row. The version also shows the byte order of the machine.
struct FactsHead {
  uint32_t version = job::kPackedFactsVersion;
  uint32_t checksum = 0;
};

/// `checksum`: of the row.
FactsHead head_of(std::string_view facts, int64_t checksum) {
  return {.checksum = static_cast<uint32_t>(checksum_of({facts, std::to_string(checksum)}))};
}

}  // namespace

std::string stored_facts(const job::Job& job, int64_t checksum) {
  if (!job::is_final(job.phase)) return {};
  const std::string facts = job::pack_facts(job);
  const FactsHead head = head_of(facts, checksum);
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + facts;
}

PackedJob PackedJob::from_row(std::string_view stored_facts, std::string_view document,
                              int64_t checksum) {
  FactsHead head;
  if (stored_facts.size() < sizeof head) return {};
  std::memcpy(&head, stored_facts.data(), sizeof head);
  const std::string_view facts = stored_facts.substr(sizeof head);
  const FactsHead right = head_of(facts, checksum);
  if (head.version != right.version || head.checksum != right.checksum) return {};
  return {facts, std::string(job::facts_in(facts.data()).owner), document};
}

PackedJob::PackedJob(const job::Job& job, std::string_view document)
    : PackedJob(job::pack_facts(job), job.owner, document) {}

PackedJob::PackedJob(std::string_view facts, const std::string& owner, std::string_view document) {
  static thread_local Compressor compressor;
  const Dictionary& dictionary = dictionaries().of(owner, document);
  const std::string_view compressed = compressor.compress(document, dictionary);
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
  static thread_local Restorer restorer;
  const auto [head, bytes] = document_in(block_.get());
  return restorer.restore({bytes, head.compressed}, head.size,
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
