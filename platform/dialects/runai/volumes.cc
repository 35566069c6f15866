#include "dialects/runai/volumes.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "record/input.h"

namespace muster::dialects::runai {

namespace {

using job::Volume;

constexpr const char* kMountIt = "mount it on the nodes, and use --volume HOST:PATH";

class VolumeReading {
 public:
  VolumeReading(cli::FlagReader& reader, bool on_kubernetes, std::vector<std::string>& notes)
      : reader_(reader), on_kubernetes_(on_kubernetes), notes_(notes) {}

  AskedMounts take() && {
    for (const char* const flag : {"--volume", "--volumes"}) {
      for (const std::string& text : reader_.texts(flag)) take_host_path(flag, text);
    }
    for (const std::string& text : reader_.texts("--pvc")) take_claim(text);
    for (const char* const flag : {"--pvc-exists", "--existing-pvc"}) {
      for (const std::string& text : reader_.texts(flag)) take_existing_claim(flag, text);
    }
    for (const char* const flag : {"--pvc-new", "--new-pvc"}) {
      for (const std::string& text : reader_.texts(flag)) take_new_claim(flag, text);
    }
    refuse_others();
    return std::move(result_);
  }

 private:
  void add(const std::string& flag, Volume volume) {
    volume.target = checked_path(flag, volume.target);
    result_.volumes.push_back({.flag = flag, .volume = std::move(volume)});
  }

  void add_existing_claim(const std::string& flag, Volume volume) {
    if (on_kubernetes_) {
      const std::string path = checked_path(flag, volume.target);
      result_.claims.push_back(
          {.flag = flag, .claim = volume.source + ":" + path + (volume.read_only ? ":ro" : "")});
      return;
    }
    notes_.push_back(flag + ": '" + volume.source +
                     "' is the project's folder of this name, created if it is missing; on "
                     "Kubernetes, set MUSTER_ENGINE=kubernetes to mount the claim");
    add(flag, std::move(volume));
  }

  std::string checked_path(const std::string& flag, const std::string& path) {
    if (!path.starts_with('/')) reader_.fault(flag, "'" + path + "' is not an absolute path");
    return plain_path(path);
  }

  /// "ro", "rw" or empty.
  bool is_read_only(const std::string& flag, const std::string& mode) {
    if (mode != "ro" && mode != "rw" && !mode.empty()) {
      reader_.fault(flag, "'" + mode + "' is neither ro nor rw");
    }
    return mode == "ro";
  }

  void check_size(const std::string& flag, const std::string& size) {
    const auto parsed = base::parse_bytes(size);
    if (!parsed) reader_.fault(flag, parsed.error().what);
  }

  void take_host_path(const std::string& flag, const std::string& text) {
    const std::vector<std::string> parts = base::split(text, ':');
    if (parts.size() > 3) {
      return reader_.fault(
          flag, "'" + text + "': volumes of an NFS server are not supported; " + kMountIt);
    }
    if (parts.size() < 2) {
      return reader_.fault(flag, "'" + text + "' has no target path; write HOST:PATH");
    }
    add(flag, {.kind = Volume::Kind::kHostPath,
               .source = checked_path(flag, parts[0]),
               .target = parts[1],
               .read_only = is_read_only(flag, parts.size() > 2 ? parts[2] : "")});
  }

  /// NAME:PATH[:ro], or [CLASS]:SIZE:PATH[:ro]; a size in the second position distinguishes them.
  void take_claim(const std::string& text) {
    const std::string flag = "--pvc";
    std::vector<std::string> parts = base::split(text, ':');
    const bool is_new = parts.size() > 2 && !parts[1].starts_with('/');
    if (is_new) {
      check_size(flag, parts[1]);
      note_new_claim(flag);
      parts.erase(parts.begin(), parts.begin() + 2);
      parts.insert(parts.begin(), "");
    }
    if (parts.size() < 2 || parts.size() > 3) {
      return reader_.fault(flag,
                           "'" + text + "' is neither NAME:PATH[:ro] nor [CLASS]:SIZE:PATH[:ro]");
    }
    if (parts[0].empty() && !is_new) return reader_.fault(flag, "'" + text + "' has no claim name");
    Volume volume{.kind = Volume::Kind::kStorage,
                  .source = parts[0],
                  .target = parts[1],
                  .read_only = is_read_only(flag, parts.size() > 2 ? parts[2] : "")};
    if (is_new) return add(flag, std::move(volume));
    add_existing_claim(flag, std::move(volume));
  }

  void take_existing_claim(const std::string& flag, const std::string& text) {
    const KeyValues values =
        read_key_values(flag, text, {.with_value = {"claimname", "path"}}, reader_);
    if (!has_all(flag, values, {"claimname", "path"})) return;
    add_existing_claim(flag, {.kind = Volume::Kind::kStorage,
                              .source = values.at("claimname"),
                              .target = values.at("path")});
  }

  void take_new_claim(const std::string& flag, const std::string& text) {
    const KeyValues values = read_key_values(
        flag, text,
        {.with_value = {"claimname", "storageclass", "size", "path"},
         .alone = {"accessmode-rwo", "accessmode-rom", "accessmode-rwm", "ro", "ephemeral"}},
        reader_);
    if (!has_all(flag, values, {"size", "path"})) return;
    check_size(flag, values.at("size"));
    note_new_claim(flag);
    // An ephemeral volume is a folder of the job, not of the project.
    const bool is_ephemeral = values.contains("ephemeral");
    add(flag, {.kind = is_ephemeral ? Volume::Kind::kTree : Volume::Kind::kStorage,
               .source = is_ephemeral ? "" : value_of(values, "claimname"),
               .target = values.at("path"),
               .read_only = values.contains("ro") || values.contains("accessmode-rom")});
  }

  /// If a part could not be parsed, the missing key may be in it and is not reported.
  bool has_all(const std::string& flag, const KeyValues& values,
               const std::vector<std::string>& keys) {
    bool has = true;
    for (const std::string& key : keys) {
      if (!value_of(values, key).empty()) continue;
      has = false;
      if (!reader_.is_at_fault(flag)) reader_.fault(flag, "must contain " + key + "=");
    }
    return has;
  }

  void note_new_claim(const std::string& flag) {
    if (std::exchange(has_noted_, true)) return;
    notes_.push_back(flag + ": the volume is a folder; its size and class are not enforced");
  }

  void refuse_others() {
    if (reader_.has("--nfs-server")) {
      reader_.fault("--nfs-server", std::string("is not supported; ") + kMountIt);
    }
    if (reader_.has("--s3")) {
      reader_.fault("--s3", std::string("is not supported; ") + kMountIt);
    }
    if (reader_.has("--configmap-volume")) {
      reader_.fault("--configmap-volume",
                    "is not supported; put the files into a folder of the nodes, and mount it with "
                    "--volume HOST:PATH:ro");
    }
    if (reader_.has("--mount-propagation")) {
      notes_.emplace_back(
          "--mount-propagation: file systems that the host mounts after the start may be missing");
    }
  }

  cli::FlagReader& reader_;
  bool on_kubernetes_;
  std::vector<std::string>& notes_;
  AskedMounts result_;
  bool has_noted_ = false;
};

}  // namespace

AskedMounts read_volumes(cli::FlagReader& reader, bool on_kubernetes,
                         std::vector<std::string>& notes) {
  return VolumeReading(reader, on_kubernetes, notes).take();
}

job::JobSpec named_after(job::JobSpec spec, const std::string& name) {
  spec.name = name;
  int count = 0;
  for (Volume& volume : spec.volumes) {
    if (volume.kind != Volume::Kind::kStorage || !volume.source.empty()) continue;
    volume.source = name + "-volume-" + std::to_string(count++);
  }
  return spec;
}

std::string plain_path(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

namespace {

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string unknown_key(const std::string& key, const KnownKeys& known) {
  std::vector<std::string> all = known.with_value;
  all.insert(all.end(), known.alone.begin(), known.alone.end());
  std::string what = "has no key '" + key + "'";
  const std::string suggestion = record::did_you_mean(key, all);
  if (!suggestion.empty()) return what + suggestion;
  what += "; the keys are";
  for (const std::string& name : all) what += " " + name;
  return what;
}

/// A part without '=' that is not a key is not printed: it may be the end of a password.
std::string piece_without_value(const std::string& piece, const KnownKeys& known) {
  if (contains(known.with_value, piece)) return "'" + piece + "' has no value";
  return "is not a list of key=value pairs separated by ','";
}

}  // namespace

KeyValues read_key_values(const std::string& flag, const std::string& text, const KnownKeys& known,
                          cli::FlagReader& reader) {
  KeyValues values;
  for (const std::string& piece : base::split(text, ',')) {
    const size_t equals = piece.find('=');
    const std::string key = piece.substr(0, equals);
    const bool has_value = equals != std::string::npos;
    if (!has_value && !contains(known.alone, key)) {
      reader.fault(flag, piece_without_value(piece, known));
    } else if (has_value && !contains(known.with_value, key)) {
      reader.fault(flag, unknown_key(key, known));
    } else if (!values.emplace(key, has_value ? piece.substr(equals + 1) : "true").second) {
      reader.fault(flag, "has the key '" + key + "' twice");
    }
  }
  return values;
}

std::string value_of(const KeyValues& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "" : found->second;
}

std::map<std::string, std::string> read_pairs(const std::string& flag, const std::string& advice,
                                              cli::FlagReader& reader) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : reader.texts(flag)) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      reader.fault(flag, "'" + text + "' has no value; " + advice);
    } else {
      pairs[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return pairs;
}

}  // namespace muster::dialects::runai
