// gRPC, protobuf and OpenSSL come from Debian without instrumentation, so the thread sanitizer does
// not see how they hand memory from thread to thread, and takes it for races. Reports with their
// frames are left out. What runs on their threads but is ours (roster, model) has tests without
// them.

extern "C" const char* __tsan_default_options();   // NOLINT
extern "C" const char* __tsan_default_options() {  // NOLINT
  // What they copy themselves is not looked at in the first place: to find a suppression for each
  // piece of a stream takes minutes, in which connections run into their time limits.
  return "ignore_noninstrumented_modules=1";
}

extern "C" const char* __tsan_default_suppressions();   // NOLINT: the sanitizer's name
extern "C" const char* __tsan_default_suppressions() {  // NOLINT
  return "race:libgrpc\n"
         "race:libgpr\n"
         "race:libprotobuf\n"
         "race:libabsl\n"
         "race:libssl\n"
         "race:libcrypto\n"
         "race:grpc::\n"
         "race:grpc_core::\n"
         "deadlock:libgrpc\n"
         "mutex:libgrpc\n";
}
