;; The inner loops of an optimizer step on a block of 8,192 float32 numbers an array: weights at 0, gradient at 32768,
;; first moment at 65536, second moment at 98304. Four numbers at a time; $n is a multiple of 16 bytes, at least 16.
;; Assembled into update-wasm.ts; the test of update.ts compares the two and prints what to put there.
(module
  (memory (export "memory") 2 2)

  ;; g <- clip g; m <- beta1 m + rest1 g; v <- beta2 v + rest2 g^2; w <- w - (decay w + size m / (sqrt(v) root + epsilon))
  (func (export "adamw") (param $n i32) (param $clip f32) (param $beta1 f32) (param $rest1 f32) (param $beta2 f32) (param $rest2 f32)
                         (param $decay f32) (param $size f32) (param $root f32) (param $epsilon f32)
    (local $i i32) (local $w v128) (local $g v128) (local $m v128) (local $v v128)
    (local $CLIP v128) (local $BETA1 v128) (local $REST1 v128) (local $BETA2 v128) (local $REST2 v128)
    (local $DECAY v128) (local $SIZE v128) (local $ROOT v128) (local $EPSILON v128) (local $TINY v128)
    (local.set $CLIP (f32x4.splat (local.get $clip)))
    (local.set $BETA1 (f32x4.splat (local.get $beta1)))
    (local.set $REST1 (f32x4.splat (local.get $rest1)))
    (local.set $BETA2 (f32x4.splat (local.get $beta2)))
    (local.set $REST2 (f32x4.splat (local.get $rest2)))
    (local.set $DECAY (f32x4.splat (local.get $decay)))
    (local.set $SIZE (f32x4.splat (local.get $size)))
    (local.set $ROOT (f32x4.splat (local.get $root)))
    (local.set $EPSILON (f32x4.splat (local.get $epsilon)))
    ;; The smallest normal number. Moments without gradient fade into numbers below it, on which processors are 45 times slower.
    (local.set $TINY (f32x4.splat (f32.const 0x1p-126)))
    (loop $next
      (local.set $g (f32x4.mul (local.get $CLIP) (v128.load offset=32768 (local.get $i))))
      (local.set $m (f32x4.add (f32x4.mul (local.get $BETA1) (v128.load offset=65536 (local.get $i)))
                               (f32x4.mul (local.get $REST1) (local.get $g))))
      (local.set $v (f32x4.add (f32x4.mul (local.get $BETA2) (v128.load offset=98304 (local.get $i)))
                               (f32x4.mul (f32x4.mul (local.get $REST2) (local.get $g)) (local.get $g))))
      (local.set $m (v128.and (local.get $m) (f32x4.ge (f32x4.abs (local.get $m)) (local.get $TINY))))
      (local.set $v (v128.and (local.get $v) (f32x4.ge (local.get $v) (local.get $TINY))))
      (v128.store offset=65536 (local.get $i) (local.get $m))
      (v128.store offset=98304 (local.get $i) (local.get $v))
      (local.set $w (v128.load (local.get $i)))
      (v128.store (local.get $i)
        (f32x4.sub (local.get $w)
          (f32x4.add (f32x4.mul (local.get $DECAY) (local.get $w))
                     (f32x4.div (f32x4.mul (local.get $SIZE) (local.get $m))
                                (f32x4.add (f32x4.mul (f32x4.sqrt (local.get $v)) (local.get $ROOT)) (local.get $EPSILON))))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $n)))))

  ;; The sum of squares of the gradient in float64, in four interleaved lanes.
  (func (export "squares") (param $n i32) (result f64)
    (local $i i32) (local $low v128) (local $high v128) (local $x v128)
    (loop $next
      (local.set $x (f64x2.promote_low_f32x4 (v128.load64_zero offset=32768 (local.get $i))))
      (local.set $low (f64x2.add (local.get $low) (f64x2.mul (local.get $x) (local.get $x))))
      (local.set $x (f64x2.promote_low_f32x4 (v128.load64_zero offset=32776 (local.get $i))))
      (local.set $high (f64x2.add (local.get $high) (f64x2.mul (local.get $x) (local.get $x))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (local.get $n))))
    (local.set $low (f64x2.add (local.get $low) (local.get $high)))
    (f64.add (f64x2.extract_lane 0 (local.get $low)) (f64x2.extract_lane 1 (local.get $low)))))
