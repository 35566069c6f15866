#include "workspace/manifest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_set>
#include <utility>

#include "base/random.h"
#include "base/units.h"
#include "workspace/path_text.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;

namespace {

constexpr std::string_view kManifestHeading = "muster-tree 1\n";
constexpr size_t kIdLength = 64;
constexpr size_t kMostNameBytes = 255;
constexpr size_t kMostLinkBytes = 4095;

const EVP_MD* sha256() {
  // Fetched once, because EVP_sha256() searches the providers at every use.
  static const EVP_MD* const kMethod = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return kMethod;
}

char letter_of(const ManifestEntry& entry) {
  switch (entry.kind) {
    case ManifestEntry::Kind::kFolder:
      return 'd';
    case ManifestEntry::Kind::kLink:
      return 'l';
    case ManifestEntry::Kind::kFile:
      return entry.executable ? 'x' : 'f';
  }
  return 'f';
}

void append_entry(std::string& text, const ManifestEntry& entry) {
  text += letter_of(entry);
  text += ' ';
  text += entry.path;
  text += '\0';
  if (entry.kind == ManifestEntry::Kind::kLink) text += entry.link + '\0';
  if (entry.kind == ManifestEntry::Kind::kFile) {
    text += std::to_string(entry.bytes);
    for (const ChunkId& chunk : entry.chunks) {
      text += ' ';
      text += chunk;
    }
  }
  text += '\n';
}

}  // namespace

ChunkId chunk_id(std::string_view content) {
  std::array<uint8_t, 32> digest{};
  // Fails only without memory or on a fault of the library. Aborting is better than a wrong id.
  if (EVP_Digest(content.data(), content.size(), digest.data(), nullptr, sha256(), nullptr) != 1) {
    std::abort();
  }
  return base::to_hex(digest);
}

bool is_id(std::string_view text) {
  return text.size() == kIdLength && std::all_of(text.begin(), text.end(), [](char digit) {
           return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
         });
}

int64_t Manifest::bytes() const {
  int64_t sum = 0;
  for (const ManifestEntry& entry : entries) sum += entry.bytes;
  return sum;
}

size_t Manifest::files() const {
  return static_cast<size_t>(std::count_if(
      entries.begin(), entries.end(),
      [](const ManifestEntry& entry) { return entry.kind == ManifestEntry::Kind::kFile; }));
}

size_t chunk_count(int64_t bytes) {
  const auto size = static_cast<uint64_t>(bytes);
  return size / kChunkBytes + (size % kChunkBytes != 0 ? 1 : 0);
}

size_t chunk_bytes(int64_t bytes, size_t index) {
  return std::min(kChunkBytes, static_cast<size_t>(bytes) - index * kChunkBytes);
}

std::vector<std::string_view> cut_into_chunks(std::string_view content) {
  std::vector<std::string_view> chunks;
  for (size_t at = 0; at < content.size(); at += kChunkBytes) {
    chunks.push_back(content.substr(at, kChunkBytes));
  }
  return chunks;
}

std::string encode(const Manifest& manifest) {
  std::string text(kManifestHeading);
  for (const ManifestEntry& entry : manifest.entries) append_entry(text, entry);
  return text;
}

std::string tree_id(std::string_view encoded) {
  return chunk_id(encoded);
}

bool is_tree_path(std::string_view path) {
  if (path.empty() || path.size() > kMostPathBytes) return false;
  if (path.find('\0') != std::string_view::npos) return false;
  for (size_t depth = 0; depth <= kMostDepth; ++depth) {
    const size_t end = path.find('/');
    const std::string_view name = path.substr(0, end);
    if (name.empty() || name == "." || name == ".." || name.size() > kMostNameBytes) return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
  return false;
}

bool link_stays_inside(std::string_view path, std::string_view link) {
  if (link.empty() || link.front() == '/' || link.size() > kMostLinkBytes) return false;
  if (link.find('\0') != std::string_view::npos) return false;
  auto above = std::count(path.begin(), path.end(), '/');
  bool named = false;
  while (!link.empty()) {
    const size_t end = std::min(link.find('/'), link.size());
    const std::string_view name = link.substr(0, end);
    if (name == "..") {
      if (named || above-- == 0) return false;
    } else if (!name.empty() && name != ".") {
      named = true;
    }
    link.remove_prefix(std::min(end + 1, link.size()));
  }
  return true;
}

namespace {

/// Parses a manifest; stops at the first fault.
class Decoder {
 public:
  explicit Decoder(std::string_view text) : rest_(text) {}

  Result<Manifest> decode() {
    if (rest_.size() > kMostManifestBytes) {
      return fault("it is longer than " + size_text(kMostManifestBytes));
    }
    if (!take(kManifestHeading)) return fault("it does not begin with its header");
    while (!rest_.empty()) {
      if (manifest_.entries.size() == kMostEntries) {
        return fault("it has more than " + count_text(kMostEntries, "entry", "entries"));
      }
      MUSTER_TRY(ManifestEntry entry, next());
      manifest_.entries.push_back(std::move(entry));
    }
    return std::move(manifest_);
  }

 private:
  Result<ManifestEntry> next() {
    ManifestEntry entry;
    const std::string_view kind = rest_.substr(0, 2);
    if (kind == "d ") {
      entry.kind = ManifestEntry::Kind::kFolder;
    } else if (kind == "l ") {
      entry.kind = ManifestEntry::Kind::kLink;
    } else if (kind == "x ") {
      entry.executable = true;
    } else if (kind != "f ") {
      return fault("an entry has an unknown kind");
    }
    rest_.remove_prefix(kind.size());
    MUSTER_TRY(const std::string_view path, take_until_nul());
    MUSTER_CHECK(check_place(path));
    entry.path = path;
    if (entry.kind == ManifestEntry::Kind::kFolder) folders_.insert(path);
    if (entry.kind == ManifestEntry::Kind::kLink) MUSTER_CHECK(read_link(entry));
    if (entry.kind == ManifestEntry::Kind::kFile) MUSTER_CHECK(read_content(entry));
    if (!take("\n")) return fault("there is more text after the entry " + shown(path));
    last_ = path;
    return entry;
  }

  /// Views into the text; the path of the folder is looked up for each entry.
  Result<void> check_place(std::string_view path) const {
    if (!is_tree_path(path))
      return fault("the path " + shown(path) + " is not valid within a tree");
    if (path <= last_) return fault("the path " + shown(path) + " is out of order");
    const size_t slash = path.rfind('/');
    if (slash != std::string_view::npos && !folders_.contains(path.substr(0, slash))) {
      return fault(shown(path) + " is in no folder of the tree");
    }
    return {};
  }

  Result<void> read_link(ManifestEntry& entry) {
    MUSTER_TRY(entry.link, take_until_nul());
    if (link_stays_inside(entry.path, entry.link)) return {};
    return fault("the link " + shown(entry.path) + " leads out of the tree, to " +
                 shown(entry.link));
  }

  Result<void> read_content(ManifestEntry& entry) {
    const size_t end = std::min(rest_.find_first_of(" \n"), rest_.size());
    const auto bytes = base::number_of<int64_t>(rest_.substr(0, end));
    // Compared as text, so that each number has only one form.
    if (!bytes || *bytes < 0 || std::to_string(*bytes) != rest_.substr(0, end)) {
      return fault("the size of " + shown(entry.path) + " is not a number");
    }
    rest_.remove_prefix(end);
    const size_t count = chunk_count(*bytes);
    constexpr size_t kStep = kIdLength + 1;
    if (rest_.size() / kStep < count) return fault(shown(entry.path) + " lacks chunks");
    entry.bytes = *bytes;
    entry.chunks.reserve(count);
    for (size_t i = 0; i < count; ++i, rest_.remove_prefix(kStep)) {
      const std::string_view id = rest_.substr(1, kIdLength);
      if (rest_.front() != ' ' || !is_id(id)) return fault(shown(entry.path) + " lacks chunks");
      entry.chunks.emplace_back(id);
    }
    return {};
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  Result<std::string_view> take_until_nul() {
    const size_t end = rest_.find('\0');
    if (end == std::string_view::npos) return fault("it ends within an entry");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  static Error fault(const std::string& what) {
    return {.code = ErrorCode::kInvalid,
            .what = "this is not a list of files: " + what,
            .advice = "send the workspace with a muster of the server's version"};
  }

  std::string_view rest_;
  std::string_view last_;
  std::unordered_set<std::string_view> folders_;
  Manifest manifest_;
};

}  // namespace

Result<Manifest> decode_manifest(std::string_view text) {
  return Decoder(text).decode();
}

}  // namespace muster::workspace
