# How every target of the project is made: warnings, hardening, sanitizers, and the guest's static twin.
find_package(PkgConfig REQUIRED)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(firestop_options INTERFACE)
target_compile_options(firestop_options INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -Wconversion -Wshadow -Wnon-virtual-dtor -Wundef -Werror
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # false alarms of g++ 12 (GCC bug 105651)
  # Part of -Wconversion for clang, not for g++; and what libstdc++ 12 itself uses in std::stable_sort.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion> $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
target_compile_definitions(firestop_options INTERFACE _GLIBCXX_ASSERTIONS)
target_include_directories(firestop_options INTERFACE ${CMAKE_SOURCE_DIR}/src)

add_library(firestop_host_options INTERFACE)
target_link_libraries(firestop_host_options INTERFACE firestop_options)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(FIRESTOP_SANITIZE STREQUAL "address")
  target_compile_options(firestop_host_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:Clang>:-fsanitize=fuzzer-no-link>)
  target_compile_definitions(firestop_host_options INTERFACE FIRESTOP_ASAN=1)
  target_link_options(firestop_host_options INTERFACE -fsanitize=address,undefined)
elseif(FIRESTOP_SANITIZE STREQUAL "thread")
  target_compile_options(firestop_host_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_compile_definitions(firestop_host_options INTERFACE FIRESTOP_TSAN=1)
  target_link_options(firestop_host_options INTERFACE -fsanitize=thread)
else()
  target_compile_options(firestop_host_options INTERFACE
    -fstack-protector-strong -fcf-protection $<$<CONFIG:Release>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
  target_link_options(firestop_host_options INTERFACE -pie -Wl,-z,relro,-z,now)
endif()

# The guest's parts: static, no exceptions, no RTTI, small; never instrumented.
add_library(firestop_guest_options INTERFACE)
target_link_libraries(firestop_guest_options INTERFACE firestop_options)
target_compile_options(firestop_guest_options INTERFACE
  -Os -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections -fstack-protector-strong -fno-pie)
target_compile_definitions(firestop_guest_options INTERFACE FIRESTOP_GUEST=1)
target_link_options(firestop_guest_options INTERFACE -static -no-pie -Wl,--gc-sections -s)

# firestop_library(NAME SOURCES a.cc ... [PUBLIC libs] [PRIVATE libs] [GUEST_SOURCES a.cc ...])
# Makes firestop_NAME; with GUEST_SOURCES also firestop_NAME_guest from those files.
function(firestop_library name)
  cmake_parse_arguments(A "" "" "SOURCES;PUBLIC;PRIVATE;GUEST_SOURCES;GUEST_LIBS" ${ARGN})
  add_library(firestop_${name} STATIC ${A_SOURCES})
  target_link_libraries(firestop_${name} PUBLIC firestop_host_options ${A_PUBLIC} PRIVATE ${A_PRIVATE})
  if(A_GUEST_SOURCES)
    add_library(firestop_${name}_guest STATIC ${A_GUEST_SOURCES})
    target_link_libraries(firestop_${name}_guest PUBLIC firestop_guest_options ${A_GUEST_LIBS})
  endif()
endfunction()

# The headers of GoogleTest, compiled once for all unit tests: each of them would take seconds otherwise.
function(firestop_test_headers)
  if(TARGET firestop_test_headers)
    return()
  endif()
  file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cc "")
  # An executable, since precompiled headers must be made with the very options (-fPIE) of who uses them.
  add_executable(firestop_test_headers ${CMAKE_BINARY_DIR}/test_headers.cc)
  set_target_properties(firestop_test_headers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/CMakeFiles)
  target_link_libraries(firestop_test_headers PRIVATE firestop_host_options GTest::gmock_main)
  target_precompile_headers(firestop_test_headers PRIVATE <gtest/gtest.h> <gmock/gmock.h>)
endfunction()

# firestop_test(NAME SOURCES ... LIBS ...): a unit test binary, its cases found by CTest, label "unit".
function(firestop_test name)
  if(NOT FIRESTOP_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name}_test ${A_SOURCES})
  target_link_libraries(${name}_test PRIVATE firestop_host_options ${A_LIBS} GTest::gmock_main)
  firestop_test_headers()
  target_precompile_headers(${name}_test REUSE_FROM firestop_test_headers)
  # Only who asks for it: a compiler's cache takes what knows of the checkout's place for something new elsewhere.
  foreach(source ${A_SOURCES})
    file(STRINGS ${source} asks REGEX FIRESTOP_SOURCE_DIR LIMIT_COUNT 1)
    if(asks)
      set_property(SOURCE ${source} APPEND PROPERTY
        COMPILE_DEFINITIONS "FIRESTOP_SOURCE_DIR=\"${CMAKE_SOURCE_DIR}\"")
    endif()
  endforeach()
  gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 120)
endfunction()
