# How every target of the project is compiled, and the two shapes a folder takes:
#
#   muster_library(NAME SOURCES a.cc b.cc DEPENDS x y)   one static library a folder
#   muster_test(NAME SOURCES a_test.cc DEPENDS x)        its unit tests, one binary a folder
include_guard()
include(GoogleTest)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Without these it does not keep what was compiled with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

set(MUSTER_SANITIZE "" CACHE STRING "sanitizers of this build: address,undefined or thread")
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
  # The check of virtual tables asks the kernel by a pipe whether memory may be read: in a test that
  # takes every descriptor away it sees ghosts.
  add_compile_options(-fno-sanitize=vptr)
endif()

option(MUSTER_FUZZ "build the fuzzers (needs clang)" OFF)
if(MUSTER_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

# Switched off: designated initialisers may leave members at their defaults; -Wrestrict and
# -Wmaybe-uninitialized are wrong about inlined std::string in gcc 12 (GCC bugs 105651, 105562).
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                    -Woverloaded-virtual -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Werror -Wno-restrict -Wno-maybe-uninitialized)
endif()

# MUSTER_OPTIMISE: of a release build, in the place of -O3, for a folder where that only costs time.
function(muster_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(MUSTER_OPTIMISE)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${MUSTER_OPTIMISE}>)
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS})
endfunction()

# Of a program of tests; muster_test() calls it. Its own code is optimised less: it is a third of what
# a build compiles, and runs but once. What it tests is compiled as it is shipped.
#
# To read GoogleTest's header takes a second, a third of what compiling a test takes: it is read once.
function(muster_test_options name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ccache asks for the first. In what comes out of such a header gcc 12 forgets that it is the
    # system's, and is wrong about std::string's bounds there (GCC bug 105651).
    target_compile_options(${name} PRIVATE -fpch-preprocess -Wno-array-bounds -Wno-stringop-overflow)
  endif()
  if(${name} STREQUAL muster_test_header)
    return()
  endif()
  if(NOT TARGET muster_test_header)
    set(empty ${PROJECT_BINARY_DIR}/muster_test_header.cc)
    file(CONFIGURE OUTPUT ${empty} CONTENT "int main() {}\n")
    add_executable(muster_test_header ${empty})
    target_link_libraries(muster_test_header PRIVATE GTest::gtest)
    target_precompile_headers(muster_test_header PRIVATE <gtest/gtest.h>)
    muster_test_options(muster_test_header)
  endif()
  target_precompile_headers(${name} REUSE_FROM muster_test_header)
endfunction()

function(muster_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gtest_main)
  muster_test_options(${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 120)
endfunction()
